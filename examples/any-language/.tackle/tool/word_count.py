#!/usr/bin/env python3
"""Counts the words of a file. Parameters are a class with type hints; a Pydantic model works in its place."""

from dataclasses import dataclass
from pathlib import Path

from tackle_tool import ToolResult, define_tool, main


@dataclass
class WordCountParams:
    file_path: str
    longest: int = 0


@define_tool(
    tool_id="word_count",
    description="Counts the words of a text file, and names its longest words where asked to.",
    parameters=WordCountParams,
)
async def word_count(args, ctx):
    path = Path(ctx.directory, args.file_path)
    await ctx.ask(permission="read", patterns=[str(path)], paths=[str(path)])
    ctx.metadata(title=f"reading {path.name}")
    words = path.read_text().split()
    longest = sorted(set(words), key=lambda word: (-len(word), word))[: args.longest]
    return ToolResult(
        title=path.name,
        output="\n".join([f"{len(words)} words", *longest]),
        metadata={"words": len(words)},
    )


if __name__ == "__main__":
    main(word_count)
