import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { encodeForwardBackward } from "../../tinker/wire/index.js";
import { TinkerTestClient, TinkerTestModel, toDatum, toTensor } from "../../../test/support/tinker-client.js";
import { AutoModelForCausalLM, type LanguageModel } from "../../generation/index.js";
import type { RunningServer } from "../server/http-server.js";
import { startTinkerServer } from "./start-tinker-server.js";

const PROMPT = [5, 6, 7, 8, 9, 10];
const SEQUENCE = [...PROMPT, 11, 12, 13, 14];
const LORA = { base_model: "embedded", lora_config: { rank: 4, seed: 1 } };
const STEP = { learning_rate: 1e-2 };
/** Ten tokens, each of which predicts the next. */
const datum = toDatum(SEQUENCE.slice(0, -1), SEQUENCE.slice(1));
/** Two sequences that begin alike and one that does not. */
const batch = [datum, toDatum([5, 6, 7, 30], [6, 7, 30, 31]), toDatum([40, 41], [41, 42], { weights: [0.5, 2] })];

let model: LanguageModel;
let folder: string;
let server: RunningServer;
let client: TinkerTestClient;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tinker-"));
  model = await AutoModelForCausalLM.fromPretrained("embedded");
  server = await startTinkerServer(model, { folder, modelName: "embedded", port: 0 });
  client = new TinkerTestClient(server.url);
});

afterAll(async () => {
  await server.close();
  await model.close();
  await rm(folder, { recursive: true, force: true });
});

async function createModel(options: object = LORA, seq = 0): Promise<{ session: string; trained: TinkerTestModel }> {
  const session = await client.createSession();
  return { session, trained: await TinkerTestModel.create(client, session, options, seq) };
}

/** Returns the log-probabilities of the targets of all data, in one list. */
async function score(trained: TinkerTestModel, data = batch): Promise<number[]> {
  const { lossFnOutputs } = await trained.pass("cross_entropy", data, { forwardOnly: true });
  return lossFnOutputs.flatMap(({ logprobs }) => Array.from(logprobs.data));
}

async function train(trained: TinkerTestModel, steps: number, data = batch): Promise<void> {
  for (let i = 0; i < steps; i++) {
    await trained.pass("cross_entropy", data);
    await trained.step(STEP);
  }
}

function maxDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  expect(a.length).toBe(b.length);
  return Math.max(...Array.from(a, (value, i) => Math.abs(value - b[i])));
}

describe("training over the Tinker API", () => {
  it("lowers the loss, and steps on the sum of passes", async () => {
    const { trained } = await createModel();
    const first = await trained.pass("cross_entropy", batch);
    expect(first.metrics["loss:sum"]).toBeGreaterThan(0);
    const norm = await trained.step({ learning_rate: 0 });
    await trained.pass("cross_entropy", batch);
    await trained.pass("cross_entropy", batch);
    expect(await trained.step({ learning_rate: 0 })).toBeCloseTo(2 * norm, 2);
    expect(await trained.step({ learning_rate: 0 })).toBe(0);
    await train(trained, 4);
    const last = await trained.pass("cross_entropy", batch, { forwardOnly: true });
    expect(last.metrics["loss:sum"]).toBeLessThan(0.7 * first.metrics["loss:sum"]);
  });

  it("computes the gradient of a custom loss from its derivative", async () => {
    const advantages = SEQUENCE.slice(1).map((_, i) => (i < 5 ? 0 : (i - 6) / 2));
    const { trained } = await createModel();
    await train(trained, 2);
    const logProbs = (await score(trained, [datum])).map((value) => value - 0.05);
    const data = [toDatum(SEQUENCE.slice(0, -1), SEQUENCE.slice(1), { logprobs: logProbs, advantages })];
    await trained.pass("importance_sampling", data);
    const norm = await trained.step({ learning_rate: 0 });
    // The derivative of -r A is -r A, and r is exp(0.05) at all tokens.
    const weights = advantages.map((value) => value * Math.exp(0.05));
    await trained.pass("cross_entropy", [toDatum(SEQUENCE.slice(0, -1), SEQUENCE.slice(1), { weights })]);
    expect(await trained.step({ learning_rate: 0 })).toBeCloseTo(norm, 4);
  });

  it("trains several targets of a position, also those of a sparse tensor", async () => {
    const { trained } = await createModel();
    await train(trained, 2);
    const targets = [
      [6, 20, 0],
      [7, 0, 0],
      [0, 21, 8],
    ];
    const weights = [
      [0.5, 0.25, 0],
      [1, 0, 0],
      [0, 2, 0.125],
    ];
    const dense = await trained.pass("cross_entropy", [toDatum([5, 6, 7], targets, { weights })]);
    const denseNorm = await trained.step({ learning_rate: 0 });
    const sparse = { crow: [0, 2, 3, 5], col: [0, 1, 0, 1, 2] };
    const listed = { shape: [3, 3], sparse };
    const data = [
      {
        tokens: [5, 6, 7],
        lossFnInputs: {
          target_tokens: { ...listed, dtype: "int64" as const, data: [6, 20, 7, 21, 8] },
          weights: { ...listed, dtype: "float32" as const, data: [0.5, 0.25, 1, 2, 0.125] },
        },
      },
    ];
    const fromSparse = await trained.pass("cross_entropy", data);
    expect(await trained.step({ learning_rate: 0 })).toBe(denseNorm);
    expect(fromSparse).toEqual(dense);
    const [{ logprobs }] = dense.lossFnOutputs;
    expect(logprobs.shape).toEqual([3, 3]);
    const alone = await score(trained, [toDatum([5, 6, 7], [20, 0, 8])]);
    expect(maxDifference([logprobs.data[1], logprobs.data[4], logprobs.data[8]], alone)).toBeLessThan(1e-5);
    const expected = targets.flat().reduce((sum, _, i) => sum - weights.flat()[i] * logprobs.data[i], 0);
    expect(dense.metrics["loss:sum"]).toBeCloseTo(expected, 4);
  });

  it("runs requests in the order of their numbers, each once", async () => {
    const { trained } = await createModel();
    const { id } = trained;
    const body = (seqId: number, forwardOnly: boolean) =>
      encodeForwardBackward({
        modelId: id,
        seqId,
        data: batch,
        lossFn: "cross_entropy",
        lossFnConfig: {},
        forwardOnly,
      });
    const step = (seqId: number) => client.post("optim_step", { model_id: id, seq_id: seqId, adam_params: STEP });
    const before = Number(server.metrics.format().match(/work_total\{kind="optim_step"\} (\d+)/u)?.[1] ?? 0);
    const after = await client.post("forward_backward", body(4, true));
    const steps = [await step(3), await step(3)];
    const passes = [
      await client.post("forward_backward", body(1, false)),
      await client.post("forward_backward", body(1, false)),
    ];
    const second = await client.post("forward_backward", body(2, false));
    expect(steps[0]).toEqual(steps[1]);
    expect(passes[0]).toEqual(passes[1]);
    for (const { request_id: requestId } of [...passes, second, steps[0], after]) await client.wait(requestId);
    expect((await step(3)).request_id).toBe(steps[0].request_id);
    const ran = server.metrics.format().match(/work_total\{kind="optim_step"\} (\d+)/u)?.[1];
    expect(Number(ran)).toBe(before + 1);
    const { trained: other } = await createModel();
    await other.pass("cross_entropy", batch);
    await other.pass("cross_entropy", batch);
    await other.step(STEP);
    expect(server.metrics.format()).toContain(`work_total{kind="optim_step"} ${Number(ran) + 1}\n`);
    const again = new TinkerTestModel(client, id);
    const { lossFnOutputs } = await again.pass("cross_entropy", batch, { forwardOnly: true, seqId: 5 });
    const values = lossFnOutputs.flatMap(({ logprobs }) => Array.from(logprobs.data));
    expect(maxDifference(values, await score(other))).toBeLessThan(1e-5);
  });

  it("trains several models at once as each alone", async () => {
    const other = [toDatum([50, 51, 52], [51, 52, 53])];
    const run = async (data: typeof batch) => {
      const { trained } = await createModel();
      await train(trained, 3, data);
      return score(trained, data);
    };
    const alone = [await run(batch), await run(other)];
    const together = await Promise.all([run(batch), run(other), run(batch)]);
    expect(maxDifference(together[0], alone[0])).toBeLessThan(1e-5);
    expect(maxDifference(together[1], alone[1])).toBeLessThan(1e-5);
    expect(maxDifference(together[2], alone[0])).toBeLessThan(1e-5);
  });

  it.each([
    ["attention", { train_mlp: false, train_unembed: false }, /self_attn/],
    ["feed-forward", { train_attn: false, train_unembed: false }, /mlp/],
    ["the output matrix", { train_attn: false, train_mlp: false }, /lm_head/],
  ])("adapts %s alone", async (_, flags, pattern) => {
    const { trained } = await createModel({ base_model: "embedded", lora_config: { rank: 2, ...flags } });
    const before = await score(trained);
    await train(trained, 1);
    expect(await score(trained)).not.toEqual(before);
    const { path } = await trained.run("save_weights_external", { path: "adapter" });
    const url = `training_runs/${trained.id}/checkpoints/external_weights/adapter/external_weights_urls`;
    const { urls } = await client.get(url);
    const config = await (await fetch(urls["adapter_config.json"])).json();
    expect(path).toBe(`tinker://${trained.id}/external_weights/adapter`);
    expect(config).toMatchObject({ r: 2, lora_alpha: 32 });
    const bytes = Buffer.from(await (await fetch(urls["adapter_model.safetensors"])).arrayBuffer());
    const header = JSON.parse(bytes.subarray(8, 8 + Number(bytes.readBigUInt64LE())).toString());
    const names = Object.keys(header).filter((name) => name !== "__metadata__");
    expect(names.every((name) => pattern.test(name))).toBe(true);
  });

  it.each<[string, string, Parameters<typeof toDatum>, object, RegExp]>([
    ["an unknown loss", "stable_reinforce", [[5], [6]], {}, /not published; use loss_fn=importance_sampling/],
    ["a setting that the loss lacks", "ppo", [[5], [6]], { beta: 1 }, /has no setting beta/],
    ["targets of another length", "cross_entropy", [[5, 6], [6]], {}, /shape \[1\] for 2 input tokens/],
    ["a token outside the vocabulary", "cross_entropy", [[5], [10_000_000]], {}, /Tokens must be integers/],
    ["a missing input", "ppo", [[5], [6], { logprobs: [-1] }], {}, /lacks `advantages`/],
    ["an input that the loss does not use", "importance_sampling", [[5], [6], { mask: [1] }], {}, /does not use/],
    ["a value that is not finite", "cross_entropy", [[5], [6], { weights: [NaN] }], {}, /not a finite number/],
    ["several targets of a surrogate", "ppo", [[5], [[6, 7]]], {}, /expected \[1\]/],
    [
      "more tokens than the context",
      "cross_entropy",
      [Array(5000).fill(5), Array(5000).fill(6)],
      {},
      /the model takes/,
    ],
  ])("refuses %s and continues", async (_, loss, args, config, message) => {
    const { trained } = await createModel();
    await expect(trained.pass(loss, [toDatum(...args)], { config: config as never })).rejects.toThrow(message);
    expect(await score(trained)).toHaveLength(15);
  });
});

describe("sampling over the Tinker API", () => {
  const sampleBody = (session: string, seqId: number, more: object = {}) => ({
    sampling_session_id: session,
    seq_id: seqId,
    num_samples: 2,
    prompt: { chunks: [{ type: "encoded_text", tokens: PROMPT }] },
    sampling_params: { max_tokens: 8, seed: 7, temperature: 1 },
    ...more,
  });

  it("samples what a seed says, with the log-probabilities that training computes", async () => {
    const { trained } = await createModel();
    await train(trained, 2);
    const session = await trained.snapshot(0);
    const [a, b] = [await client.sample(sampleBody(session, 0)), await client.sample(sampleBody(session, 1))];
    const tokensOf = ({ sequences }: typeof a) => sequences.map(({ tokens }) => tokens);
    expect(tokensOf(b)).toEqual(tokensOf(a));
    expect(a.sequences[0].tokens).not.toEqual(a.sequences[1].tokens);
    for (const { tokens, logprobs } of a.sequences) {
      const all = [...PROMPT, ...tokens];
      const scored = await score(trained, [toDatum(all.slice(0, -1), all.slice(1))]);
      expect(maxDifference(logprobs!, scored.slice(PROMPT.length - 1))).toBeLessThan(1e-4);
    }
  });

  it("keeps a snapshot while training continues, and several in turn", async () => {
    const { session, trained } = await createModel();
    const greedy = { sampling_params: { max_tokens: 1, temperature: 0 }, prompt_logprobs: true, num_samples: 1 };
    const base = await client.post("create_sampling_session", {
      session_id: session,
      sampling_session_seq_id: 100,
      base_model: "embedded",
    });
    const sessions = [base.sampling_session_id];
    const scores = [await score(trained, [datum])];
    for (let i = 0; i < 7; i++) {
      await train(trained, 1);
      sessions.push(await trained.snapshot(i));
      scores.push(await score(trained, [datum]));
    }
    const prompt = { chunks: [{ type: "encoded_text", tokens: SEQUENCE }] };
    // More snapshots than stay in memory, in an order that loads each again.
    const order = [3, 0, 7, 1, 5, 2, 6, 4, 0, 3, 7, 1];
    const results = await Promise.all(
      order.map(async (i, k) => client.sample(sampleBody(sessions[i], k, { ...greedy, prompt }))),
    );
    const differences = results.map(({ promptLogprobs }, k) =>
      maxDifference(promptLogprobs!.slice(1) as number[], scores[order[k]]),
    );
    expect(Math.max(...differences)).toBeLessThan(1e-5);
  });

  it("scores prompts: the last tokens, the most probable ones, and given ones", async () => {
    const { trained } = await createModel();
    await train(trained, 2);
    const session = await trained.snapshot(0);
    const targets = { data: [20, -1, 21, 22, -1, -1, -1, 23, 24, 25], dtype: "int64", shape: [5, 2] };
    const full = await client.sample(
      sampleBody(session, 0, { prompt_logprobs: true, topk_prompt_logprobs: 3, target_prompt_logprobs: targets }),
    );
    const expected = await score(trained, [toDatum(PROMPT.slice(0, -1), PROMPT.slice(1))]);
    expect(full.promptLogprobs![0]).toBeUndefined();
    expect(maxDifference(full.promptLogprobs!.slice(1) as number[], expected)).toBeLessThan(1e-5);
    expect(full.topkPromptLogprobs!.map(({ length }) => length)).toEqual([0, 3, 3, 3, 3, 3]);
    const [first] = full.topkPromptLogprobs![1];
    const [best] = await score(trained, [toDatum([PROMPT[0]], [first.token])]);
    expect(first.logprob).toBeCloseTo(best, 4);
    const scored = await score(trained, [toDatum(PROMPT.slice(0, -1), [20, 21, 5, 23, 24])]);
    const data = Array.from(full.targetPromptLogprobs!.data);
    expect(full.targetPromptLogprobs!.shape).toEqual([5, 2]);
    expect(
      maxDifference([data[0], data[2], data[7], data[8]], [scored[0], scored[1], scored[3], scored[4]]),
    ).toBeLessThan(1e-5);
    expect([data[1], data[4], data[5], data[6]]).toEqual([0, 0, 0, 0]);
    const last = await client.sample(sampleBody(session, 1, { prompt_logprobs: true, prompt_logprobs_last_n: 2 }));
    expect(last.promptLogprobs!.slice(0, 4)).toEqual([undefined, undefined, undefined, undefined]);
    expect(maxDifference(last.promptLogprobs!.slice(4) as number[], expected.slice(3))).toBeLessThan(1e-5);
  });

  it("draws tokens in place of the prompt's, and returns the most probable ones of a sample", async () => {
    const { trained } = await createModel();
    const session = await trained.snapshot(0);
    const { promptAltTokens, sequences } = await client.sample(
      sampleBody(session, 0, { prompt_alt_tokens_k: 2, topk_sample_logprobs: 2 }),
    );
    const { tokens, logprobs } = promptAltTokens!;
    expect(tokens.shape).toEqual([5, 2]);
    const drawn = Array.from(tokens.data).filter((_, i) => i % 2 === 0);
    const expected = await score(trained, [toDatum(PROMPT.slice(0, -1), drawn)]);
    expect(
      maxDifference(
        Array.from(logprobs.data).filter((_, i) => i % 2 === 0),
        expected,
      ),
    ).toBeLessThan(1e-5);
    expect(sequences[0].topkLogprobs!.map(({ length }) => length)).toEqual(sequences[0].tokens.map(() => 2));
  });

  it("stops at tokens and strings", async () => {
    const session = await client.createSession();
    const { sampling_session_id: id } = await client.post("create_sampling_session", {
      session_id: session,
      sampling_session_seq_id: 0,
    });
    const free = await client.sample(sampleBody(id, 0, { sampling_params: { max_tokens: 20, seed: 3 } }));
    const [{ tokens }] = free.sequences;
    const params = { max_tokens: 20, seed: 3 };
    const stopToken = tokens[0];
    const atToken = await client.sample(sampleBody(id, 1, { sampling_params: { ...params, stop: [stopToken] } }));
    expect(atToken.sequences[0]).toMatchObject({
      stopReason: "stop",
      tokens: tokens.slice(0, tokens.indexOf(stopToken) + 1),
    });
    const text = model.tokenizer.decode(tokens.slice(0, 1)).trim();
    const atText = await client.sample(sampleBody(id, 2, { sampling_params: { ...params, stop: text } }));
    expect(atText.sequences[0].stopReason).toBe("stop");
    expect(model.tokenizer.decode(atText.sequences[0].tokens)).toContain(text);
    expect(atText.sequences[0].tokens.length).toBeLessThan(tokens.length);
  });

  it("follows a model with snapshots in flight, and keeps others", async () => {
    const { trained } = await createModel();
    const fixed = await trained.snapshot(0);
    const save = async (seq: number) =>
      (await trained.run("save_weights_for_sampler", { sampling_session_seq_id: seq, kind: "inflight" }))
        .sampling_session_id;
    const before = await score(trained, [datum]);
    const first = await save(1);
    await train(trained, 2);
    await save(2);
    const prompt = { chunks: [{ type: "encoded_text", tokens: SEQUENCE }] };
    const scoreBy = async (session: string) => {
      const { promptLogprobs } = await client.sample(
        sampleBody(session, 0, {
          prompt,
          prompt_logprobs: true,
          sampling_params: { max_tokens: 1, temperature: 1e-9 },
        }),
      );
      return promptLogprobs!.slice(1) as number[];
    };
    expect(maxDifference(await scoreBy(first), await score(trained, [datum]))).toBeLessThan(1e-5);
    expect(maxDifference(await scoreBy(fixed), before)).toBeLessThan(1e-5);
  });

  it("stops a sample that is cancelled", async () => {
    const session = await client.createSession();
    const base = { session_id: session, sampling_session_seq_id: 0 };
    const { sampling_session_id: id } = await client.post("create_sampling_session", base);
    // No token ends it, so that it would fill the context.
    const params = { max_tokens: 100_000, temperature: 100 };
    const { request_id: requestId } = await client.post(
      "asample",
      sampleBody(id, 0, { num_samples: 64, sampling_params: params }),
    );
    await client.post("cancel_future", { request_id: requestId });
    await expect(client.wait(requestId)).rejects.toThrow(/user: /);
  });

  it("lists samples that have ended, for clients that poll for all of them", async () => {
    const session = await client.createSession();
    const { sampling_session_id: id } = await client.post("create_sampling_session", {
      session_id: session,
      sampling_session_seq_id: 0,
    });
    const answers = [await client.post("asample", sampleBody(id, 0)), await client.post("asample", sampleBody(id, 1))];
    expect(answers[0].sample_sequence_ids).toHaveLength(2);
    expect(await client.post("asample", sampleBody(id, 0))).toEqual(answers[0]);
    const target = { type: "sampling_session", sampling_session_id: id };
    const ended: string[] = [];
    let cursor = 0;
    while (ended.length < 2) {
      const poll = await client.post("retrieve_futures", { target, prev_cursor: cursor });
      ended.push(...poll.completions.map((each: { request_id: string }) => each.request_id));
      cursor = poll.cursor;
    }
    const ids = answers.map(({ request_id: requestId }) => requestId);
    expect([...ended].sort((a, b) => (a < b ? -1 : 1))).toEqual(ids.sort((a: string, b: string) => (a < b ? -1 : 1)));
    for (const requestId of ids) await client.wait(requestId);
    const again = await client.post("retrieve_futures", {
      target,
      prev_cursor: cursor,
      timeout: 0,
      retrieved_request_ids: ids,
    });
    expect(again).toEqual({ completions: [], cursor });
    const { status } = await client.request("POST", "retrieve_future", { request_id: ids[0] });
    expect(status).toBe(410);
  });
});

describe("checkpoints of the Tinker API", () => {
  it("continue training with the optimizer, after a restart as well", async () => {
    const state = await mkdtemp(join(tmpdir(), "tinker-"));
    const start = () => startTinkerServer(model, { folder: state, modelName: "embedded", port: 0 });
    let running = await start();
    const first = new TinkerTestClient(running.url);
    const trained = await TinkerTestModel.create(first, await first.createSession(), {
      ...LORA,
      user_metadata: { renderer: "x" },
    });
    await train(trained, 2);
    const { path } = await trained.run("save_weights", { path: "step2" });
    await trained.run("save_weights_for_sampler", { path: "final" });
    await train(trained, 1);
    const expected = await score(trained);
    await running.close();
    running = await start();
    const second = new TinkerTestClient(running.url);
    const { training_runs: runs } = await second.get("training_runs?limit=20&offset=0");
    expect(runs).toMatchObject([{ training_run_id: trained.id, lora_rank: 4, user_metadata: { renderer: "x" } }]);
    const { checkpoints } = await second.get(`training_runs/${trained.id}/checkpoints`);
    expect(checkpoints.map((each: { tinker_path: string }) => each.tinker_path).sort()).toEqual([
      `tinker://${trained.id}/sampler_weights/final`,
      path,
    ]);
    expect(await second.post("weights_info", { tinker_path: path })).toMatchObject({ lora_rank: 4, is_lora: true });
    const session = await second.createSession();
    const resumed = await TinkerTestModel.load(second, session, path);
    await train(resumed, 1);
    expect(maxDifference(await score(resumed), expected)).toBeLessThan(1e-6);
    const without = await TinkerTestModel.load(second, session, path, { optimizer: false, seq: 1 });
    await train(without, 1);
    expect(maxDifference(await score(without), expected)).toBeGreaterThan(1e-4);
    await running.close();
    await rm(state, { recursive: true });
  });

  it("of another rank are refused by a model that exists", async () => {
    const { trained } = await createModel();
    const { path } = await trained.run("save_weights", { path: "rank4" });
    const other = await createModel({ base_model: "embedded", lora_config: { rank: 8 } });
    await expect(other.trained.run("load_weights", { path, optimizer: true })).rejects.toThrow(/user: .*must be/);
    await expect(
      TinkerTestModel.load(client, other.session, path.replace("rank4", "rank5"), { seq: 1 }),
    ).rejects.toThrow(/404/);
    await trained.run("save_weights_for_sampler", { path: "sampler" });
    const sampler = path.replace("weights/rank4", "sampler_weights/sampler");
    await expect(TinkerTestModel.load(client, other.session, sampler, { seq: 2 })).rejects.toThrow(
      /no state of an optimizer/,
    );
    const loaded = await TinkerTestModel.load(client, other.session, sampler, { seq: 3, optimizer: false });
    expect(maxDifference(await score(loaded), await score(trained))).toBeLessThan(1e-6);
  });

  it("are replaced only where the client says so, deleted, and gone after their time", async () => {
    const { trained } = await createModel();
    await trained.run("save_weights", { path: "a" });
    await expect(trained.run("save_weights", { path: "a" })).rejects.toThrow(/exists already/);
    await trained.run("save_weights", { path: "a", overwrite: true });
    const base = `training_runs/${trained.id}/checkpoints`;
    await client.request("PUT", `${base}/weights/a/ttl`, { ttl_seconds: 1000 });
    const [listed] = (await client.get(base)).checkpoints;
    expect(Date.parse(listed.expires_at)).toBeGreaterThan(Date.now());
    expect((await client.request("DELETE", `${base}/weights/a`)).status).toBe(200);
    expect((await client.request("DELETE", `${base}/weights/a`)).status).toBe(404);
    expect((await client.get(base)).checkpoints).toEqual([]);
  });

  it.each(["../a", "a/b", "", ".hidden", "a\\b", "x".repeat(129), "a\0"])("have no name like %j", async (name) => {
    const { trained } = await createModel();
    const { status, body } = await client.request("POST", "save_weights", {
      model_id: trained.id,
      seq_id: 1,
      path: name,
    });
    expect([status, body.detail]).toEqual([400, expect.stringMatching(/A checkpoint's name must have/)]);
    expect(await readdir(folder)).not.toContain("a");
  });

  it.each([
    ["tinker://../../etc/weights/a", /must be tinker:/],
    ["tinker://../weights/a", /no training run/],
    ["tinker://a:train:0/weights/..", /name must have/],
    ["tinker://a/b", /must be tinker:\/\/RUN/],
    ["/etc/passwd", /must be tinker:\/\/RUN/],
    ["tinker://a:train:0/weights/a", /There is no checkpoint/],
  ])("are not read from %j", async (path, message) => {
    const session = await client.createSession();
    const { status, body } = await client.request("POST", "load_weights", {
      session_id: session,
      model_seq_id: 0,
      path,
    });
    expect(status).toBeGreaterThanOrEqual(400);
    expect(body.detail).toMatch(message);
  });
});

describe("sessions of the Tinker API", () => {
  it("free what they hold when they end", async () => {
    const { session, trained } = await createModel();
    await client.post(`sessions/${session}/finish`, { reason: { type: "success" } });
    expect((await client.request("POST", "get_info", { model_id: trained.id })).status).toBe(404);
    expect((await client.request("POST", "session_heartbeat", { session_id: session })).status).toBe(410);
    expect((await client.request("POST", "session_heartbeat", { session_id: "unknown" })).status).toBe(404);
    await client.post(`sessions/${session}/finish`, { reason: { type: "success" } });
  });

  it("end without a sign of life", async () => {
    const state = await mkdtemp(join(tmpdir(), "tinker-"));
    const running = await startTinkerServer(model, {
      folder: state,
      modelName: "embedded",
      port: 0,
      sessionTimeoutMs: 300,
    });
    const other = new TinkerTestClient(running.url);
    const session = await other.createSession();
    const trained = await TinkerTestModel.create(other, session, LORA);
    const snapshot = await trained.snapshot(0);
    expect(snapshot).toBe(`${session}:sample:0`);
    await expect.poll(async () => (await other.request("GET", "training_runs")).status, { timeout: 5000 }).toBe(200);
    // Asking for the model is a sign of life, so that only the end of the session is looked for.
    await expect
      .poll(
        async () => {
          await new Promise((resolve) => setTimeout(resolve, 700));
          return (await other.request("POST", "session_heartbeat", { session_id: session })).status;
        },
        { timeout: 10_000 },
      )
      .toBe(410);
    await running.close();
    await rm(state, { recursive: true });
  });

  it("are created once for a request that is repeated", async () => {
    const create = async (key: string) =>
      (await client.request("POST", "create_session", { tags: [] }, { "x-idempotency-key": key })).body.session_id;
    const id = await create("a");
    expect(await create("a")).toBe(id);
    expect(await create("b")).not.toBe(id);
  });

  it.each<[string, object, RegExp]>([
    ["another model", { base_model: "other" }, /There is no model "other" here. Use embedded/],
    ["a rank without end", { base_model: "embedded", lora_config: { rank: 100_000 } }, /at most 1024/],
    ["a rank of 0", { base_model: "embedded", lora_config: { rank: 0 } }, /rank/],
    [
      "no part of the model",
      { base_model: "embedded", lora_config: { rank: 1, train_attn: false, train_mlp: false, train_unembed: false } },
      /must be true/,
    ],
    ["another optimizer", { base_model: "embedded", optimizer_config: { type: "dimuon", version: 1 } }, /Use adamw/],
  ])("refuse to train %s", async (_, options, message) => {
    const session_id = await client.createSession();
    const { status, body } = await client.request("POST", "create_model", { session_id, model_seq_id: 0, ...options });
    expect([status, body.detail]).toEqual([400, expect.stringMatching(message)]);
  });

  it("say what the server has", async () => {
    const { supported_models: models } = await client.get("get_server_capabilities");
    expect(models).toMatchObject([{ model_name: "embedded", trainable: true, sampleable: true }]);
    const { trained } = await createModel();
    const info = await client.post("get_info", { model_id: trained.id });
    expect(info).toMatchObject({ lora_rank: 4, model_name: "embedded", model_data: { tokenizer_id: "embedded" } });
  });
});

it("needs a key that the SDK can send", async () => {
  const options = { folder, modelName: "embedded", port: 0 };
  await expect(startTinkerServer(model, { ...options, apiKey: "secret" })).rejects.toThrow(/begin with tml-/);
  await expect(startTinkerServer(model, { ...options, host: "0.0.0.0" })).rejects.toThrow(/in use/);
  const other = await mkdtemp(join(tmpdir(), "tinker-"));
  const open = { ...options, folder: other };
  await expect(startTinkerServer(model, { ...open, host: "0.0.0.0" })).rejects.toThrow(/needs an API key/);
  const running = await startTinkerServer(model, { ...open, apiKey: "tml-secret" });
  const { status } = await new TinkerTestClient(running.url).request("POST", "create_session", {});
  expect(status).toBe(401);
  expect(await new TinkerTestClient(running.url, { "x-api-key": "tml-secret" }).createSession()).toBeTypeOf("string");
  await running.close();
  await rm(other, { recursive: true });
});

it("reads tensors that a test writes", () => {
  expect(
    toTensor([
      [1, 2],
      [3, 4],
    ]),
  ).toEqual({ dtype: "float32", shape: [2, 2], data: [1, 2, 3, 4] });
});
