"""An agent on the official SDK that does what it is told; prints its address.

Arguments: `plain` is an agent that does not stream; `key` one that wants a token.
"""

import asyncio
import logging
import socket
import sys

import uvicorn
from a2a.helpers.proto_helpers import new_data_part, new_raw_part, new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution.agent_executor import AgentExecutor
from a2a.server.request_handlers.default_request_handler_v2 import DefaultRequestHandlerV2
from a2a.server.routes.agent_card_routes import create_agent_card_routes
from a2a.server.routes.jsonrpc_routes import create_jsonrpc_routes
from a2a.server.tasks.inmemory_task_store import InMemoryTaskStore
from a2a.server.tasks.task_updater import TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Role
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse

started = []
cancelled = []


def words(text):
    return new_text_message(text, role=Role.ROLE_AGENT)


class Executor(AgentExecutor):
    async def execute(self, context, event_queue):
        told = context.get_user_input()
        if told == "message":
            await event_queue.enqueue_event(words("Just a message."))
            return
        if told in ("started", "cancelled"):
            await event_queue.enqueue_event(words(f"{len(started if told == 'started' else cancelled)}"))
            return
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
            answers = False
        else:
            answers = True
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        if answers and told == "again":
            await updater.requires_input(words("Which city, then?"))
            return
        if answers:
            await updater.add_artifact([new_text_part(f"Rain in {told}.")], name="weather")
            await updater.complete()
            return
        await updater.start_work()
        match told.split()[0]:
            case "hello":
                await updater.add_artifact([new_text_part(f"Hello, {told[6:]}!")], name="greeting")
                await updater.complete()
            case "stream":
                for piece in ["one ", "two ", "three"]:
                    more = piece != "one "
                    await updater.add_artifact([new_text_part(piece)], artifact_id="a", name="count", append=more)
                await updater.complete(words("Counted."))
            case "steps":
                for step in ["weighs", "mixes", "bakes"]:
                    await updater.start_work(words(step))
                await updater.complete(words("Baked."))
            case "data":
                parts = [new_data_part({"n": 3}), new_raw_part(b"hi", media_type="text/plain", filename="hi.txt")]
                await updater.add_artifact(parts, name="things")
                await updater.complete()
            case "fail":
                await updater.failed(words("The oven is broken."))
            case "reject":
                await updater.reject(words("I do not bake on Sundays."))
            case "ask":
                await updater.requires_input(words("Which city?"))
            case "auth":
                await updater.requires_auth(words("Sign in first."))
            case "raise":
                raise RuntimeError("a defect of the agent")
            case "slow":
                started.append(task.id)
                await asyncio.Event().wait()

    async def cancel(self, context, event_queue):
        cancelled.append(context.task_id)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel(words("Stopped."))


def main():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    card = AgentCard(
        name="Cook",
        description="Does what it is told.",
        version="1",
        capabilities=AgentCapabilities(streaming="plain" not in sys.argv),
        supported_interfaces=[AgentInterface(url=f"{address}/rpc", protocol_binding="JSONRPC", protocol_version="1.0")],
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="greet", name="Greet", description="Says hello", tags=["x"])],
    )
    handler = DefaultRequestHandlerV2(agent_executor=Executor(), task_store=InMemoryTaskStore(), agent_card=card)
    app = Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/rpc")])

    if "key" in sys.argv:
        inner = app

        async def app(scope, receive, send):
            headers = dict(scope.get("headers", []))
            if scope["type"] == "http" and headers.get(b"authorization") != b"Bearer open sesame":
                await PlainTextResponse("no", status_code=401)(scope, receive, send)
            else:
                await inner(scope, receive, send)

    logging.disable(logging.CRITICAL)
    print(address, flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off")).run(sockets=[listener])


if __name__ == "__main__":
    main()
