"""Worlds that programs are written for: a goal, a seed program and a strict verifier each, by name."""

WORLDS = {  # name -> `world(size)`; sizes to try
    "circle-packing": ("evolvent.tasks.worlds.circle_packing:world", "26, 32"),
    "autocorrelation-1": ("evolvent.tasks.worlds.autocorrelation_1:world", "600, 200"),
    "autocorrelation-2": ("evolvent.tasks.worlds.autocorrelation_2:world", "50"),
    "autocorrelation-3": ("evolvent.tasks.worlds.autocorrelation_3:world", "400, 150"),
    "heilbronn": ("evolvent.tasks.worlds.heilbronn:world", "11"),
    "kissing": ("evolvent.tasks.worlds.kissing:world", "11, 8"),
    "matrix-multiplication": ("evolvent.tasks.worlds.matrix_multiplication:world", "2x4x5, 3x3x3"),
    "overlap": ("evolvent.tasks.worlds.overlap:world", "200, 51"),
    "landscape": ("evolvent.tasks.worlds.landscape:world", "kind=nk,k=2"),  # simulated
    "regret": ("evolvent.tasks.worlds.regret:world", "100, 1000"),
    "meta-solver": ("evolvent.tasks.worlds.meta_solver:world", "20, 30"),
    "digits": ("evolvent.tasks.worlds.digits:world", ""),
    "digits-live": ("evolvent.tasks.worlds.digits_live:world", ""),
    "charlm": ("evolvent.tasks.worlds.charlm:world", ""),
    "adapters": ("evolvent.tasks.worlds.adapters.world:task", "400, 1000"),
    "repair": ("evolvent.tasks.worlds.repair.world:world", "60"),
    "data-curation": ("evolvent.tasks.worlds.curation.world:world", ""),
    "patches": ("evolvent.tasks.worlds.repair.patches:task", "40, gate-20"),
    "swe": ("evolvent.tasks.worlds.swe.world:world", "24, 12"),
    "text-games": ("evolvent.tasks.worlds.text_games.world:world", "games=12"),
    "structures": ("evolvent.tasks.worlds.structures.world:world", "problems=20"),
    "sql": ("evolvent.tasks.worlds.sql.world:task", "20"),
    "workflow": ("evolvent.tasks.worlds.workflow.world:world", "questions=8"),
    "grid-games": ("evolvent.tasks.worlds.grid_games.world:task", "8"),
}
