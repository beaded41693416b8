"""Studies: many runs, described in a study file, and the tables and figures that are made of them.

`definition.py` has the parts of a study; `file/` reads them from TOML, which docs/experiments.md describes.
`find_runs.py` finds the runs, `run_record.py` measures one (`tfrctrace.runs` all of them);
`results/` summarises and tests the values, and `page/` writes tables, figures and the page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

    from tfrctrace.study.run_study import StudyResults


def perform_study(
    path: str | os.PathLike[str],
    *,
    runs: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    cache: str | os.PathLike[str] | None = None,
    force: bool = False,
    allow_code: bool = False,
) -> StudyResults:
    """Perform the study in the file `path`, with `jobs` runs measured at a time.

    Its runs are in the folder `runs`, that of the file if not given. `cache` is the folder in which what was
    measured is kept, the user's own if not given; with `force` nothing is taken from there. A study that
    names classes (`module:Class`) is refused unless `allow_code`. What is wrong with some of the runs is in
    `problems` of the result. Raises `InputError` if the study or all of its runs cannot be read.
    """
    import os

    from tfrctrace.runs.cache import Cache, default_folder
    from tfrctrace.runs.workers import processes
    from tfrctrace.study.file.study_file import read_study
    from tfrctrace.study.run_study import perform

    folder = default_folder() if cache is None else os.fspath(cache)
    runs_folder = None if runs is None else os.fspath(runs)
    study = read_study(os.fspath(path), runs=runs_folder, allow_code=allow_code)
    return perform(study, workers=processes(jobs), cache=Cache(folder), force=force)
