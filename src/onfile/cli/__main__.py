"""`python -m onfile.cli` is the `onfile` command."""

from __future__ import annotations

import sys

from . import main

sys.exit(main())
