"""A turn, once: the loop, its journal, the engines that keep it."""
