"""Starts SkyRL's Tinker server (JAX on the processor) and our client of it, which answers the bench.

python skyrl_server.py --model FOLDER --threads N ...; the arguments are passed on to bench/ours/tinker.ts.
"""

import atexit
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request


def serve(model: str, port: int, work: pathlib.Path) -> None:
    import uvicorn
    from skyrl.tinker import api
    from skyrl.tinker.config import EngineConfig, config_to_argv

    # The server starts its engine by uv, which is not needed in an environment that has everything.
    api._build_uv_run_cmd_engine = lambda parent, config: [
        sys.executable,
        "-m",
        "skyrl.tinker.engine",
        *config_to_argv(config),
    ]
    api.app.state.engine_config = EngineConfig(
        base_model=model,
        backend="jax",
        backend_config={"max_lora_adapters": 4, "max_lora_rank": 8},
        checkpoints_base=str(work / "checkpoints"),
        database_url=f"sqlite:///{work}/tinker.db",
    )
    uvicorn.run(api.app, host="127.0.0.1", port=port, log_level="warning")


def main() -> None:
    arguments = sys.argv[1:]
    model = arguments[arguments.index("--model") + 1]
    threads = arguments[arguments.index("--threads") + 1]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    work = tempfile.mkdtemp(prefix="bench-skyrl-")
    cores = sorted(os.sched_getaffinity(0))[: int(threads)]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "HF_HUB_OFFLINE": "1"}
    server = subprocess.Popen(
        [sys.executable, __file__, "--serve", model, str(port), work],
        env=environment,
        stdout=sys.stderr,
        start_new_session=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    atexit.register(lambda: server.poll() is None and os.killpg(server.pid, 9))
    url = f"http://127.0.0.1:{port}"
    for _ in range(600):
        try:
            urllib.request.urlopen(f"{url}/api/v1/healthz").read()
            break
        except OSError:
            if server.poll() is not None:
                sys.exit("SkyRL's server has ended")
            time.sleep(0.5)
    client = pathlib.Path(__file__).parents[1] / ".build" / "bench" / "ours" / "tinker.js"
    sys.exit(subprocess.call(["node", str(client), *arguments, "--url", url]))


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(sys.argv[2], int(sys.argv[3]), pathlib.Path(sys.argv[4]))
    else:
        main()
