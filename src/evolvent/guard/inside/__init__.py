"""What runs inside the sandbox: standard library only, no imports of the platform, which is not there."""
