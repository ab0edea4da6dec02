import type { Hono } from "hono";
import * as z from "zod";
import { invalidArgument } from "../../core/errors.js";
import { runStepsWithPauses } from "../../core/steps.js";
import type { ModelChatEngine } from "./model-chat-engine.js";
import { readJsonBody } from "./read-json-body.js";
import type { ScoreEngine } from "./score-engine.js";
import { listOf, parseBody, textContent } from "./wire-format.js";

/** Maximum number of candidates of a request, over all of its prompts. */
const MAX_CANDIDATES = 4096;

const message = z.object({ role: z.string(), content: textContent });
const scoreBody = z.strictObject({
  model: z.string().optional(),
  items: listOf(
    z.strictObject({
      /** Text or messages. */
      prompt: z.union([z.string().min(1), listOf(message, { min: 1 })]),
      candidates: listOf(z.string().min(1), { min: 1, max: MAX_CANDIDATES }),
    }),
    { min: 1, max: MAX_CANDIDATES },
  ).refine(
    (items) => items.reduce((sum, { candidates }) => sum + candidates.length, 0) <= MAX_CANDIDATES,
    `must have at most ${MAX_CANDIDATES} candidates in all`,
  ),
  outputs: listOf(z.string()).optional(),
});

/** A model that scores. */
export interface Scorer {
  readonly chat: ModelChatEngine;
  readonly scores: ScoreEngine;
}

/** Adds POST /score: log-probabilities of candidates that continue prompts, and custom outputs. */
export function mountScoreRoute(app: Hono, scorerFor: (model: string | undefined) => Scorer): void {
  app.post("/score", async (context) => {
    const { model, items, outputs } = parseBody(scoreBody, await readJsonBody(context));
    const { chat, scores } = scorerFor(model);
    const { tokenizer, causalLM } = chat.model;
    const encoded: { tokens: readonly number[]; rows: number[][] }[] = [];
    for (const { prompt, candidates } of items) {
      const tokens = await chat.renderPrompt({ input: prompt });
      const tooLong = candidates.findIndex((text) => tokenizer.minTokenCount(text) > causalLM.config.maxPositions);
      if (tooLong >= 0) throw invalidArgument(`Candidate ${tooLong} is longer than the context. Shorten it.`);
      const rows: number[][] = [];
      for (const candidate of candidates)
        rows.push(await runStepsWithPauses(tokenizer.encodeContinuationSteps(candidate, tokens.at(-1))));
      const longest = Math.max(...rows.map(({ length }) => length));
      if (tokens.length + longest > causalLM.config.maxPositions)
        throw invalidArgument(`A prompt has ${tokens.length} tokens and a candidate ${longest}; the context has less.`);
      encoded.push({ tokens, rows });
    }
    const data = await Promise.all(encoded.map(({ tokens, rows }) => scores.score(tokens, rows, outputs)));
    return context.json({
      object: "list",
      model: chat.modelName,
      data: data.map((candidates) =>
        candidates.map(({ tokens, logProbs, outputs: values }) => ({
          logprob: logProbs.reduce((sum, value) => sum + value, 0),
          tokens,
          token_logprobs: logProbs,
          ...(outputs !== undefined && { outputs: values }),
        })),
      ),
    });
  });
}
