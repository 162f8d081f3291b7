"""Lineage: the store of events and artefacts, versions, rollback, reports."""
