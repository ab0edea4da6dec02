import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { Sampler } from "../../src/generation/sampling/sampler.js";
import { mul, neg, reduceSum } from "../../src/engine/graph/index.js";
import { makeTrainable } from "../../src/models/adapters/get-peft-model.js";
import type { PrefixGroup } from "../../src/models/graphs/sequence-batch.js";
import { CausalLM } from "../../src/models/causal-lm.js";
import { mergeAdapter } from "../../src/models/adapters/merge-adapter.js";
import { loadAdapter } from "../../src/models/save-model.js";
import { ScoringGraph, TrainingGraph } from "../../src/models/graphs/training-graph.js";
import type { SelectedToken } from "../../src/models/graphs/token-batch.js";
import { ModelFixture } from "./models/model-fixture.js";
import { ForwardPass } from "./models/forward-pass.js";
import { maxRelativeError, type ParityOptions, type ParityReport } from "./parity-report.js";

const TOLERANCE = 1e-4;

/**
 * Every model below `directory` (the fixtures' models/ folder) that has an expected.safetensors.
 */
export async function runModelsParity(
  directory: string,
  report: ParityReport,
  { device = "cpu" }: ParityOptions,
): Promise<void> {
  const names = existsSync(directory) ? (await readdir(directory)).sort() : [];
  const folders = names.filter((name) => existsSync(join(directory, name, "expected.safetensors")));
  if (folders.length === 0) report.skip("models", `no folder below ${directory} has an expected.safetensors`);
  for (const name of folders)
    await runGuarded(report, `models/${name}`, () => runModel(join(directory, name), name, { report, device }));
}

async function runModel(
  folder: string,
  name: string,
  { report, device }: ParityOptions & { readonly report: ParityReport },
): Promise<void> {
  const fixture = await ModelFixture.open(folder);
  const model = await CausalLM.open(folder, { device, threads: 1 });
  try {
    const parity = new ModelParity(fixture, `models/${name}`, report);
    await parity.forward(model);
    await parity.checkLikelihood(model, "");
    await parity.sampler(model, "");
    if (fixture.has("adapter.logits")) {
      const adapted = await loadAdapter(model, join(folder, "adapter"));
      await parity.adapter(adapted);
      await parity.checkLikelihood(adapted, "adapter.");
      await parity.sampler(adapted, "adapter.");
      await parity.checkGradients(adapted, "adapter.grad.", "base_model.model.");
    }
    await parity.checkFullGradients(model);
  } finally {
    await model.close();
    await fixture.close();
  }
}

/** Compares forms of one model with one fixture. */
class ModelParity {
  private readonly groups: readonly PrefixGroup[];

  constructor(
    private readonly fixture: ModelFixture,
    private readonly name: string,
    private readonly report: ParityReport,
  ) {
    this.groups = [{ prefix: [], rows: fixture.rows }];
  }

  async forward(model: CausalLM): Promise<void> {
    const { fixture } = this;
    await runGuarded(this.report, `${this.name} forward`, async () => {
      const pass = await ForwardPass.create(model);
      const { hidden, logits } = await pass.run(fixture.rows);
      await this.compareTokens("logits", logits);
      await this.compareTokens("last_hidden", hidden);
      await this.compareGreedy("greedy", (count) => pass.generateGreedy(fixture.rows, count));
      await pass.release();
    });
  }

  /** In addition to the adapter's numbers, those of the base model with the adapter disabled. */
  async adapter(adapted: CausalLM): Promise<void> {
    const { fixture } = this;
    await runGuarded(this.report, `${this.name} adapter`, async () => {
      const unmerged = await ForwardPass.create(adapted, "unmerged");
      await this.compareTokens("adapter.logits", (await unmerged.run(fixture.rows)).logits);
      await this.compareTokens("logits", (await unmerged.run(fixture.rows, { adapter: false })).logits, "adapter off");
      await this.compareGreedy("adapter.greedy", (count) => unmerged.generateGreedy(fixture.rows, count));
      await unmerged.release();
      // PEFT merges the output matrix's adapter into the embedding too where they are one.
      const { head, embedding } = adapted.config.names;
      const expected = adapted.isHeadTrained && head === embedding ? "adapter.logits" : "merged.logits";
      await this.compareMerged(expected, await ForwardPass.create(adapted, "merged"), "in the graph");
      await this.compareMerged(expected, await ForwardPass.create(await mergeAdapter(adapted)), "in the weights");
    });
  }

  private async compareMerged(name: string, forward: ForwardPass, detail: string): Promise<void> {
    await this.compareTokens(name, (await forward.run(this.fixture.rows)).logits, detail);
    await forward.release();
  }

  /**
   * Log-probabilities of all tokens, in rows by themselves and behind a prefix, and the response's
   * mean.
   */
  async checkLikelihood(model: CausalLM, prefix: "" | "adapter."): Promise<void> {
    const { fixture } = this;
    await runGuarded(this.report, `${this.name} ${prefix}logprobs`, async () => {
      const scoring = await ScoringGraph.create(model);
      const all = tokensWithContext(fixture.rows);
      const { logProbs } = await scoring.run({ groups: this.groups, selected: all });
      await this.compareLogProbs(`${prefix}logprobs`, all, logProbs);

      const prefixLengths = fixture.rows.map((row) => Math.ceil(row.length / 2));
      const groups = fixture.rows.map((row, i) => ({
        prefix: row.slice(0, prefixLengths[i]),
        rows: [row.slice(prefixLengths[i])],
      }));
      const suffixTokens = all.filter(({ row, index }) => index >= prefixLengths[row]);
      const shifted = suffixTokens.map(({ row, index }) => ({ group: row, row: 0, index: index - prefixLengths[row] }));
      const shared = await scoring.run({ groups, selected: shifted });
      await this.compareLogProbs(`${prefix}logprobs`, suffixTokens, shared.logProbs, "behind a prefix");

      const afterCommonPrefix: number[] = [];
      for (const [rowIndex, row] of fixture.rows.entries()) {
        // Two groups with the same row, whose prefixes are two thirds and one third of it: the
        // third is their common prefix.
        const cut = Math.ceil(row.length / 3);
        const groups = [2 * cut, cut].map((length) => ({ prefix: row.slice(0, length), rows: [row.slice(length)] }));
        const selected = all.flatMap((token) =>
          token.row === rowIndex ? [{ ...token, row: 0, index: token.index - 2 * cut }] : [],
        );
        afterCommonPrefix.push(...(await scoring.run({ groups, selected })).logProbs);
      }
      await this.compareLogProbs(`${prefix}logprobs`, all, afterCommonPrefix, "behind a common prefix");

      const response = all.map(({ row, index }) => fixture.response[row][index]);
      const sum = logProbs.reduce((total, value, i) => total + (response[i] ? value : 0), 0);
      const expected = await fixture.readScalar(`${prefix}nll`);
      this.number(`${prefix}nll`, [-sum / fixture.responseCount], [expected]);
      await scoring.release();
    });
  }

  /**
   * The sampler, which keeps what it has read: greedy replies, and scores of what follows each
   * row's first token.
   */
  async sampler(model: CausalLM, prefix: "" | "adapter."): Promise<void> {
    const { fixture } = this;
    await runGuarded(this.report, `${this.name} ${prefix}sampler`, async () => {
      const sampler = await Sampler.create(model);
      await this.compareGreedy(`${prefix}greedy`, (count) => generateGreedy(sampler, fixture.rows, count), "sampler");
      const scores = await Promise.all(fixture.rows.map((row) => sampler.score(row.slice(0, 1), row.slice(1))));
      await this.compareLogProbs(`${prefix}logprobs`, tokensWithContext(fixture.rows), scores.flat(), "sampler");
      await sampler.release();
    });
  }

  async checkFullGradients(model: CausalLM): Promise<void> {
    if ((await this.fixture.group("full_grad.")).size === 0) return;
    await this.checkGradients(await makeTrainable(model), "full_grad.", "");
  }

  /**
   * Gradients of the response's mean negative log-likelihood; `owner` comes before a parameter's
   * name in the fixture.
   */
  async checkGradients(model: CausalLM, prefix: "adapter.grad." | "full_grad.", owner: string): Promise<void> {
    const { fixture } = this;
    const selected = tokensWithContext(fixture.rows).filter(({ row, index }) => fixture.response[row][index]);
    for (const adapterMode of model.adapter === undefined ? (["merged"] as const) : (["merged", "unmerged"] as const)) {
      const label = model.adapter === undefined ? "" : adapterMode;
      await runGuarded(this.report, `${this.name} ${prefix}* ${label}`, async () => {
        const graph = await TrainingGraph.create(
          model,
          ({ logProbs }) => ({ loss: mul(neg(reduceSum(logProbs)), 1 / fixture.responseCount) }),
          { adapterMode, withPrefix: false },
        );
        const { loss } = await graph.run({ groups: this.groups, selected });
        const nll = await fixture.readScalar(prefix === "full_grad." ? "nll" : "adapter.nll");
        this.number(`${prefix}* loss`, loss.data, [nll], label);
        const expected = await fixture.group(prefix);
        const names = [...expected.keys()].map((name) => name.slice(owner.length));
        this.checkNames(`${prefix}* names`, names, model.parameters.names);
        let error = 0;
        for (const [name, values] of expected) {
          const ours = await model.parameters.readGradient(name.slice(owner.length));
          error = Math.max(error, maxRelativeError(ours, values));
        }
        this.report.checkWithin(`${this.name} ${prefix}* (${expected.size} tensors) ${label}`, error, TOLERANCE);
        await graph.release();
      });
    }
  }

  private async compareTokens(name: string, values: Float32Array, detail = ""): Promise<void> {
    this.number(name, values, await this.fixture.readPerToken(name), detail);
  }

  private async compareLogProbs(
    name: string,
    tokens: readonly SelectedToken[],
    values: ArrayLike<number>,
    detail = "",
  ): Promise<void> {
    const all = await this.fixture.readPerToken(name);
    const starts: number[] = [];
    let length = 0;
    for (const row of this.fixture.rows) {
      starts.push(length);
      length += row.length;
    }
    const expected = tokens.map(({ row, index }) => all[starts[row] + index]);
    this.number(name, values, expected, detail);
  }

  private async compareGreedy(
    name: string,
    generate: (count: number) => Promise<readonly (readonly number[])[]>,
    detail = "",
  ): Promise<void> {
    const expected = await this.fixture.readIntegerRows(name);
    const ours = await generate(expected[0].length);
    const mismatch = ours.findIndex((row, i) => row.join() !== expected[i].join());
    const difference = `in row ${mismatch}: ${ours[mismatch]?.join()} for ${expected[mismatch]?.join()}`;
    this.report.checkEqual([this.name, name, detail].filter(Boolean).join(" "), mismatch < 0, difference);
  }

  private checkNames(name: string, ours: readonly string[], expected: readonly string[]): void {
    const [left, right] = [ours, expected].map((names) => [...names].sort().join(", "));
    if (left !== right) this.report.checkEqual(`${this.name} ${name}`, false, `: ${left} for ${right}`);
  }

  private number(name: string, ours: ArrayLike<number>, expected: ArrayLike<number>, detail = ""): void {
    this.report.checkWithin(
      [this.name, name, detail].filter(Boolean).join(" "),
      maxRelativeError(ours, expected),
      TOLERANCE,
    );
  }
}

/** The most probable tokens after each row; a token that ends text is like any other. */
async function generateGreedy(
  sampler: Sampler,
  rows: readonly (readonly number[])[],
  maxNewTokens: number,
): Promise<(readonly number[])[]> {
  const sampling = { temperature: 0, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 };
  const completions = rows.map((prompt) =>
    sampler.sample({ prompt, sampling, maxNewTokens, random: () => 0, stopTokens: new Set() }),
  );
  return (await Promise.all(completions)).map(({ tokens }) => tokens);
}

/** Every token of the rows that has tokens before it. */
function tokensWithContext(rows: readonly (readonly number[])[]): SelectedToken[] {
  return rows.flatMap((tokens, row) => tokens.slice(1).map((_, i) => ({ group: 0, row, index: i + 1 })));
}

/** A case that throws counts as one failure. */
async function runGuarded(report: ParityReport, name: string, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    report.error(name, error);
  }
}
