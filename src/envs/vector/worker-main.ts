import { connectToParent } from "#platform";
import { LlamaGymError, errorMessage } from "../../core/errors.js";
import { spaceToJson } from "../spaces/space-json.js";
import { loadEnv } from "./load-env.js";
import { SubEnv } from "./sub-env.js";
import type {
  EnvDescription,
  EnvWorkerCall,
  EnvWorkerResponse,
  EnvWorkerRequest,
  EnvWorkerSetup,
} from "./worker-protocol.js";

const parent = connectToParent<EnvWorkerRequest, EnvWorkerSetup>();
const { source, firstIndex, count, options, initiallyEnded } = parent.data;

const subEnvs = Promise.all(
  Array.from({ length: count }, async (_, i) => {
    const make = () => loadEnv(source);
    return new SubEnv(await make(), make, firstIndex + i, options, initiallyEnded);
  }),
);
// The first call reports an error here.
subEnvs.catch(() => undefined);

function describeEnv({ env }: SubEnv): EnvDescription {
  return {
    name: env.toString(),
    observationSpace: spaceToJson(env.observationSpace),
    actionSpace: spaceToJson(env.actionSpace),
    metadata: env.metadata,
  };
}

/** One value per environment; undefined for those left unchanged. */
async function handleCall(call: EnvWorkerCall): Promise<unknown[]> {
  const envs = await subEnvs;
  switch (call.method) {
    case "describe":
      return envs.map(describeEnv);
    case "reset":
      return await Promise.all(
        envs.map(async (subEnv, i) => {
          const resetOptions = call.options[i];
          return resetOptions === undefined ? undefined : await subEnv.reset(resetOptions);
        }),
      );
    case "step":
      return await Promise.all(envs.map((subEnv, i) => subEnv.step(call.actions[i])));
    case "render":
      return await Promise.all(envs.map((subEnv) => subEnv.render(call.mode)));
    case "getState":
      return envs.map((subEnv) => subEnv.getState());
    case "setState":
      envs.forEach((subEnv, i) => subEnv.setState(call.states[i]));
      return [];
    case "close":
      await Promise.all(envs.map((subEnv) => subEnv.close()));
      return [];
  }
}

async function respond({ id, call }: EnvWorkerRequest): Promise<EnvWorkerResponse> {
  try {
    return { id, values: await handleCall(call) };
  } catch (error) {
    const code = error instanceof LlamaGymError ? error.code : undefined;
    return { id, error: { code, message: errorMessage(error) } };
  }
}

parent.onMessage((request) => {
  void respond(request).then((message) => {
    try {
      parent.post(message);
    } catch (error) {
      // An observation or info that contains functions cannot be cloned.
      const text = `The result of ${request.call.method}() cannot be sent between threads: ${String(error)}`;
      parent.post({ id: message.id, error: { code: "ENV_INVALID", message: text } });
    }
  });
});
