"""Write tools for Tackle in Python: decorate a function and pass it to `main`.

    from tackle_tool import ToolResult, define_tool, main

    @define_tool("shout", "Returns the text in upper case.")
    async def shout(args, ctx):
        ...

The parameters are defined by a Pydantic model, by a class with type hints (a dataclass, or a plain class with defaults),
or by the type hints on the function's arguments. Standard output is reserved for the protocol, so `print` writes to
standard error. Requires Python 3.9 or later, and no packages.
"""

import asyncio
import inspect
import json
import os
import sys
import threading
import typing
from dataclasses import dataclass, field

__all__ = ["PermissionRefused", "ToolContext", "ToolResult", "define_tool", "main"]


@dataclass
class ToolResult:
    """The result of a call. `title` is for the user, `output` for the model, `metadata` for programs."""

    title: str
    output: str
    metadata: dict = field(default_factory=dict)
    attachments: typing.Optional[list] = None


class PermissionRefused(Exception):
    """Raised when a permission is refused. If you do not catch it, the call fails with the refusal."""


class ToolContext:
    """The context of a call, and methods for communicating with Tackle. `abort` is set when the call is aborted."""

    def __init__(self, call, write):
        context = call["context"]
        self.session_id = context["sessionID"]
        self.message_id = context["messageID"]
        self.call_id = context.get("callID")
        self.agent = context["agent"]
        self.directory = context["directory"]
        self.worktree = context["worktree"]
        self.abort = asyncio.Event()
        self._id = call["id"]
        self._write = write
        self._asked = {}

    def metadata(self, title=None, metadata=None):
        """Reports progress to the user."""
        self._write(_present(type="metadata", id=self._id, title=title, metadata=metadata))

    async def ask(self, permission, patterns, metadata=None, always=None, paths=None):
        """Requests a permission. Raises PermissionRefused if the permission is refused. Call this before you act."""
        name = str(len(self._asked) + 1)
        reply = self._asked[name] = asyncio.get_running_loop().create_future()
        self._write(
            _present(
                type="ask",
                id=self._id,
                ask=name,
                permission=permission,
                patterns=list(patterns),
                metadata=metadata,
                always=always,
                paths=paths,
            )
        )
        line = await reply
        if not line["allowed"]:
            raise PermissionRefused(line.get("message", "It was not allowed."))

    def _take(self, line, work):
        if line["type"] == "reply":
            reply = self._asked.get(line["ask"])
            if reply is not None and not reply.done():
                reply.set_result(line)
        elif line["type"] == "abort":
            self.abort.set()
            work.cancel()


def define_tool(tool_id, description, parameters=None, timeout=None):
    """Returns a decorator that turns a function into a tool. `tool_id` is the file name without the extension.

    With `parameters`, the function is called with `(args, ctx)`. Without `parameters`, it is called with its arguments
    by name, and with `ctx` if it has an argument of this name. The function can be async. It returns a ToolResult or a
    string. `timeout` is in milliseconds.
    """

    def decorator(function):
        reader = _class_reader(parameters) if parameters is not None else _function_reader(function)
        manifest = _present(
            name=tool_id, description=description, parameters=reader.schema, timeout=timeout
        )

        async def execute(arguments, ctx):
            try:
                args = reader.read(arguments)
            except Exception as error:
                raise ValueError(f"Invalid arguments for {tool_id}: {error}") from error
            if parameters is not None:
                outcome = function(args, ctx)
            else:
                takes_context = "ctx" in inspect.signature(function).parameters
                outcome = function(**args, **({"ctx": ctx} if takes_context else {}))
            result = await outcome if inspect.isawaitable(outcome) else outcome
            return ToolResult(tool_id, result) if isinstance(result, str) else result

        execute.id = tool_id
        execute.description = description
        execute.parameters = parameters
        execute.manifest = manifest
        return execute

    return decorator


def main(tool):
    """Prints the manifest if `--describe` is given. Otherwise runs the call from standard input."""
    protocol, sys.stdout = sys.stdout, sys.stderr

    def write(line):
        protocol.write(json.dumps(line, allow_nan=False) + "\n")
        protocol.flush()

    if "--describe" in sys.argv[1:]:
        write(tool.manifest)
    else:
        asyncio.run(_work(tool, write))


async def _work(tool, write):
    lines = _read_lines()
    call = json.loads(next(lines))
    ctx = ToolContext(call, write)
    work = asyncio.ensure_future(tool(call["arguments"], ctx))
    loop = asyncio.get_running_loop()

    def read():
        for text in lines:
            try:
                loop.call_soon_threadsafe(ctx._take, json.loads(text), work)
            except RuntimeError:
                return  # The event loop has ended.

    threading.Thread(target=read, daemon=True).start()
    try:
        result = await work
        line = _present(
            type="result",
            id=call["id"],
            title=result.title,
            output=result.output,
            metadata=result.metadata,
            attachments=result.attachments,
        )
    except asyncio.CancelledError:
        line = {"type": "error", "id": call["id"], "message": "The call was aborted."}
    except Exception as error:
        if not isinstance(error, (PermissionRefused, ValueError, OSError)):
            import traceback

            traceback.print_exc()
        line = {"type": "error", "id": call["id"], "message": str(error) or type(error).__name__}
    write(line)


def _read_lines():
    """Reads lines without `sys.stdin`, because Python crashes if it exits while a thread reads from it."""
    rest = b""
    while True:
        piece = os.read(0, 65536)
        if not piece:
            return
        *lines, rest = (rest + piece).split(b"\n")
        yield from (line for line in lines if line.strip())


def _present(**fields):
    return {key: value for key, value in fields.items() if value is not None}


@dataclass
class _Reader:
    schema: dict
    read: typing.Callable


def _class_reader(model):
    if hasattr(model, "model_json_schema"):
        return _Reader(model.model_json_schema(), model.model_validate)
    hints = typing.get_type_hints(model)
    defaults = {name: getattr(model, name) for name in hints if hasattr(model, name)}
    # A default factory of a dataclass is not an attribute of the class.
    made = [
        name
        for name, described in getattr(model, "__dataclass_fields__", {}).items()
        if callable(described.default_factory)
    ]

    def read(arguments):
        if hasattr(model, "__dataclass_fields__"):
            return model(**arguments)
        args = model()
        for name, value in {**defaults, **arguments}.items():
            setattr(args, name, value)
        return args

    return _Reader(_object_schema(hints, defaults, made), read)


def _function_reader(function):
    hints = typing.get_type_hints(function)
    given = {
        name: each for name, each in inspect.signature(function).parameters.items() if name != "ctx"
    }
    defaults = {name: each.default for name, each in given.items() if each.default is not each.empty}
    return _Reader(
        _object_schema({name: hints.get(name, typing.Any) for name in given}, defaults), dict
    )


def _object_schema(hints, defaults, made=()):
    properties = {}
    for name, hint in hints.items():
        properties[name] = _schema(hint)
        if isinstance(defaults.get(name), (str, int, float, bool)):
            properties[name]["default"] = defaults[name]
    required = [name for name in hints if name not in defaults and name not in made]
    return {"type": "object", "properties": properties, "required": required}


_SIMPLE = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
    dict: "object",
    list: "array",
}


def _schema(hint):
    """Returns the JSON Schema for a type hint. For an unsupported hint, the schema accepts any value."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    if origin is list and args:
        return {"type": "array", "items": _schema(args[0])}
    if origin is dict and len(args) == 2:
        return {"type": "object", "additionalProperties": _schema(args[1])}
    if origin is typing.Literal:
        return {"enum": list(args)}
    if origin is typing.Union or type(hint).__name__ == "UnionType":
        return {"anyOf": [_schema(each) for each in args]}
    return {}
