"""The sandbox of the search tests."""

from tests.search.conftest import sandboxed as sandboxed
