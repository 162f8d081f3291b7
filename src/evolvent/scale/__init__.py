"""Work in processes of a Ray cluster; an extra, which a run on one machine never imports."""
