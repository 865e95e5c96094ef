"""`python -m tests.torture --seconds 3600 [CAMPAIGN …]`, what `make torture` runs.

The time is shared out by weight. Each campaign's counts are printed when it ends; the exit code is 1 if any promise was
found broken, and then the directory of that campaign is kept.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from .campaign import Budget, Campaign, Report
from .campaigns import CAMPAIGNS


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("torture", description="Break everything around the server, and see what holds.")
    parser.add_argument("campaigns", nargs="*", metavar="CAMPAIGN", help=f"of {', '.join(CAMPAIGNS)}; all by default")
    parser.add_argument("--seconds", type=float, default=60, help="for all campaigns together (60)")
    parser.add_argument("--goal", type=int, help="end a campaign after so many kills, power cuts, operations …")
    parser.add_argument("--seed", type=int, default=1, help="of the random numbers (1)")
    parser.add_argument("--location", type=Path, help="directory on the disk to use (the temporary one)")
    return parser.parse_args()


def _work(name: str, campaign: Campaign, budget: Budget, options: argparse.Namespace) -> Report:
    """Run one campaign in a directory of its own, which stays if a promise was broken."""
    directory = Path(tempfile.mkdtemp(prefix=f"lazulite-torture-{name}-", dir=options.location))
    began = time.monotonic()
    report = campaign.run(budget, options.seed, directory)
    counts = ", ".join(
        f"{count:,} {what}" if isinstance(count, int) else f"{what} {count}" for what, count in report.counts.items()
    )
    verdict = f"{len(report.problems)} PROBLEMS" if report.problems else "all held"
    print(f"{name}: {counts}; {time.monotonic() - began:,.0f} s; {verdict}", flush=True)
    for problem in report.problems:
        print(f"    {problem[:2000]}", flush=True)
    if report.problems:
        print(f"    see {directory}", flush=True)
    else:
        shutil.rmtree(directory)
    return report


def main() -> int:
    """Run the campaigns; return the exit code."""
    options = _arguments()
    names = options.campaigns or list(CAMPAIGNS)
    unknown = [name for name in names if name not in CAMPAIGNS]
    if unknown:
        print(f"no such campaign: {', '.join(unknown)}", file=sys.stderr)
        return 2
    total = sum(CAMPAIGNS[name].weight for name in names)
    broken = 0
    for name in names:
        campaign = CAMPAIGNS[name]
        budget = Budget(options.seconds * campaign.weight / total, options.goal)
        broken += len(_work(name, campaign, budget, options).problems)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
