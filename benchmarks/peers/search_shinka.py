"""One search of ShinkaEvolve in the present folder. usage: search_shinka.py PORT ITERATIONS SECONDS"""

import os
import sys

os.environ.update(SHINKA_PRICING_MODE="offline", LOCAL_OPENAI_API_KEY="x")
from shinka.core import EvolutionConfig, ShinkaEvolveRunner
from shinka.database import DatabaseConfig
from shinka.launch import LocalJobConfig

if __name__ == "__main__":
    port, iterations, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    evolution = EvolutionConfig(
        task_sys_msg="maximise X", patch_types=["diff"], patch_type_probs=[1.0], num_generations=iterations + 1,
        llm_models=[f"local/stub@http://127.0.0.1:{port}/v1"], llm_dynamic_selection=None,
        llm_dynamic_selection_kwargs={}, llm_kwargs={"temperatures": [0.0], "max_tokens": 1000},
        meta_rec_interval=None, embedding_model=None, init_program_path="first.py", results_dir="out",
        max_patch_resamples=1,
    )  # fmt: skip
    job = LocalJobConfig(eval_program_path="shinka_evaluate.py", time=f"00:{seconds // 60:02d}:{seconds % 60:02d}")
    database = DatabaseConfig(db_path="evolution.sqlite", num_islands=1)
    ShinkaEvolveRunner(  # as quiet as ours: its log is a good part of its time
        evo_config=evolution, job_config=job, db_config=database, max_evaluation_jobs=1, max_proposal_jobs=1,
        verbose=False,
    ).run()  # fmt: skip
