/**
 * Trains an agent that plays Blackjack by calls of an OpenAI-compatible URL, for ai-sdk-agent.ts
 * and langchain-agent.ts.
 */
import { fork } from "node:child_process";
import { parseArgs } from "node:util";
import { AutoModelForCausalLMWithValueHead, type Device, ppo } from "llamagym";
import { GatewayTrainer, type AgentEpisode } from "llamagym/gateway";

/** Plays one hand by calls of `baseURL` and returns what it won. */
type PlayHand = (baseURL: string, seed: number) => Promise<number>;

/** Hands that are played at the same time, by all processes together. */
const NUM_SESSIONS = 64;

const { values } = parseArgs({
  options: {
    episodes: { type: "string", default: "50000" },
    "eval-episodes": { type: "string", default: "20000" },
    processes: { type: "string", default: "0" },
    model: { type: "string", default: "embedded" },
    device: { type: "string", default: "auto" },
    gateway: { type: "string" },
    index: { type: "string", default: "0" },
  },
});
const numProcesses = Number(values.processes);

/**
 * Trains on hands that this process or, with --processes, others play, and prints the greedy mean
 * return.
 */
export async function trainAgent(name: string, playHand: PlayHand): Promise<void> {
  if (values.gateway !== undefined) return playForGateway(values.gateway, playHand);
  const isEmbedded = values.model === "embedded";
  const model = await AutoModelForCausalLMWithValueHead.fromPretrained(values.model, {
    device: values.device as Device,
  });
  const episodes = Number(values.episodes);
  const batchSize = Math.min(isEmbedded ? 2048 : 256, episodes);
  const agent = async ({ baseURL, seed, reward }: AgentEpisode) => reward(await playHand(baseURL, seed));
  const trainer = new GatewayTrainer({
    model,
    episodes,
    numSessions: NUM_SESSIONS,
    maxCompletionLength: 64,
    seed: 1,
    algorithm: ppo({
      batchSize,
      miniBatchSize: Math.ceil(batchSize / 4),
      numPpoEpochs: 4,
      learningRate: isEmbedded ? 3e-3 : 1e-4,
      lrSchedulerType: "linear",
      initKlCoef: 0,
      advantageLevel: "turn",
      lam: 0.95,
      vfCoef: 0.5,
      stateBaseline: isEmbedded,
      entropyCoef: 0.2,
      entropySchedulerType: "linear",
      maxGradNorm: 0.5,
    }),
    ...(numProcesses === 0 && { agent }),
  });
  const url = await trainer.listen();
  const failed = new AbortController();
  const players = Array.from({ length: numProcesses }, (_, index) =>
    fork(process.argv[1]!, ["--gateway", url, "--processes", values.processes, "--index", String(index)]),
  );
  for (const player of players) player.once("exit", (code) => code !== 0 && failed.abort());
  const { state } = await trainer.train({
    signal: failed.signal,
    onUpdate: ({ state: { episodes: hands }, metrics }) =>
      console.log(`hand ${hands}: mean return ${metrics["rollout/ep_rew_mean"]?.toFixed(3)}`),
  });
  for (const player of players) player.kill();
  const evalEpisodes = Number(values["eval-episodes"]);
  const { meanReturn, standardError } = await trainer.evaluate({ episodes: evalEpisodes, agent });
  console.log(`greedy mean return ${meanReturn.toFixed(3)} ± ${standardError.toFixed(3)} (random -0.394, best -0.043)`);
  await model.savePretrained(`runs/example-${name}`);
  console.log(`${state.episodes} hands, ${state.updates} updates. Saved the adapter to runs/example-${name}.`);
  await model.close();
}

/** Plays hands for the gateway of another process until it closes. */
async function playForGateway(gateway: string, playHand: PlayHand): Promise<void> {
  const post = async (path: string, body: object) => {
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${gateway}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(await response.text());
    return (await response.json()) as { readonly id: string; readonly baseURL: string };
  };
  let seed = Number(values.index);
  const play = async () => {
    for (;;) {
      seed += numProcesses;
      const { id, baseURL } = await post("/sessions", {});
      await post(`/sessions/${id}/end`, { reward: await playHand(baseURL, seed) });
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.ceil(NUM_SESSIONS / numProcesses) }, play));
  } catch (error) {
    // The gateway closes at the end of the training.
    const isOpen = await fetch(`${gateway}/health`).then(
      () => true,
      () => false,
    );
    if (isOpen) throw error;
    process.exit(0);
  }
}
