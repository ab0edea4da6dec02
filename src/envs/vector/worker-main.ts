import { parentPort, workerData } from "node:worker_threads";
import { LlamaGymError } from "../../errors.js";
import { spaceToJson } from "../spaces/space-json.js";
import { loadEnv } from "./load-env.js";
import { EnvSlot } from "./slot.js";
import type { EnvDescription, WorkerCall, WorkerReply, WorkerRequest, WorkerSetup } from "./worker-protocol.js";

const { source, firstIndex, count, options, startEnded } = workerData as WorkerSetup;

const slots = Promise.all(
  Array.from({ length: count }, async (_, i) => {
    const make = () => loadEnv(source);
    return new EnvSlot(await make(), make, firstIndex + i, options, startEnded);
  }),
);
// The first call reports what went wrong here.
slots.catch(() => undefined);

function describe({ env }: EnvSlot): EnvDescription {
  return {
    name: env.toString(),
    observationSpace: spaceToJson(env.observationSpace),
    actionSpace: spaceToJson(env.actionSpace),
    metadata: env.metadata,
  };
}

/** One value for each environment; undefined for one that is left as it is. */
async function answer(call: WorkerCall): Promise<unknown[]> {
  const envs = await slots;
  switch (call.method) {
    case "describe":
      return envs.map(describe);
    case "reset":
      return await Promise.all(
        envs.map(async (slot, i) => {
          const wanted = call.options[i];
          return wanted === undefined ? undefined : await slot.reset(wanted);
        }),
      );
    case "step":
      return await Promise.all(envs.map((slot, i) => slot.step(call.actions[i])));
    case "render":
      return await Promise.all(envs.map((slot) => slot.render(call.mode)));
    case "getState":
      return envs.map((slot) => slot.getState());
    case "setState":
      envs.forEach((slot, i) => slot.setState(call.states[i]));
      return [];
    case "close":
      await Promise.all(envs.map((slot) => slot.close()));
      return [];
  }
}

async function reply({ number, call }: WorkerRequest): Promise<WorkerReply> {
  try {
    return { number, values: await answer(call) };
  } catch (error) {
    const code = error instanceof LlamaGymError ? error.code : undefined;
    return { number, error: { code, message: error instanceof Error ? error.message : String(error) } };
  }
}

parentPort?.on("message", (request: WorkerRequest) => {
  void reply(request).then((message) => {
    try {
      parentPort?.postMessage(message);
    } catch (error) {
      // An observation or info with functions in it cannot be sent.
      const text = `what ${request.call.method}() gave cannot be sent between threads: ${String(error)}`;
      parentPort?.postMessage({ number: message.number, error: { code: "ENV_INVALID", message: text } });
    }
  });
});
