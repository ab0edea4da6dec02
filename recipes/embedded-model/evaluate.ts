import type { LanguageModel } from "../../src/generation/language-model.js";
import { toMessages, type Conversation } from "./corpus/conversation.js";
import type { Scenario } from "./corpus/games/game.js";
import type { RandomStream } from "../../src/core/random/random-stream.js";

/** How many of a skill's questions were answered rightly. */
export interface SkillScore {
  readonly skill: string;
  readonly accuracy: number;
  readonly questions: number;
}

/**
 * Answers questions greedily and compares them, letter by letter, with the right answers; by skill.
 */
export async function evaluateSkills(
  model: LanguageModel,
  conversations: readonly Conversation[],
): Promise<readonly SkillScore[]> {
  const exchanges = conversations.flatMap((conversation) =>
    conversation.exchanges.map(({ skill, assistant }, i) => ({
      skill,
      right: assistant,
      prompt: toMessages(conversation, i + 1).slice(0, -1),
    })),
  );
  const questions = exchanges.filter(({ skill }) => skill !== "action");
  const options = { temperature: 0, maxNewTokens: 24 };
  const replies = await model.generateBatch(
    questions.map(({ prompt }) => prompt),
    options,
  );
  const scores = new Map<string, { right: number; questions: number }>();
  questions.forEach(({ skill, right }, i) => {
    const score = scores.get(skill) ?? { right: 0, questions: 0 };
    score.right += replies[i].text === right ? 1 : 0;
    score.questions++;
    scores.set(skill, score);
  });
  return [...scores]
    .map(([skill, { right, questions }]) => ({ skill, accuracy: right / questions, questions }))
    .sort((a, b) => (a.skill < b.skill ? -1 : 1));
}

/** How evenly a model chooses among the actions of a game. */
export interface ActionScore {
  readonly game: string;
  /** Mean probability that a reply, up to its end token, is one of the actions. */
  readonly inForm: number;
  /**
   * Mean over moments and actions of |p - 1 / n| * n, p the action's share of what is in form, n
   * the number of actions.
   */
  readonly unevenness: number;
  readonly moments: number;
}

/**
 * Probabilities of all actions in moments of games, by game. Games with more actions than `most`
 * are left out.
 */
export async function evaluateActions(
  model: LanguageModel,
  games: readonly Scenario[],
  { maxActions, random }: { readonly maxActions: number; readonly random: RandomStream },
): Promise<readonly ActionScore[]> {
  const end = model.endTokenIds[0];
  const moments = games.map(({ id, system, observe }) => ({ id, system, ...observe(random) }));
  const scored = await Promise.all(
    moments
      .filter(({ validCompletions }) => validCompletions.length <= maxActions)
      .map(async ({ id, system, text, validCompletions }) => {
        const prompt = [
          { role: "system", content: system },
          { role: "user", content: text },
        ];
        const tokens = validCompletions.map((reply) => [...model.tokenizer.encode(reply), end]);
        const probabilities = (await model.score(prompt, tokens)).map(({ logProb }) => Math.exp(logProb));
        const inForm = probabilities.reduce((sum, p) => sum + p, 0);
        const n = probabilities.length;
        const unevenness = probabilities.reduce((sum, p) => sum + Math.abs((p / inForm) * n - 1), 0) / n;
        return { game: id, inForm, unevenness };
      }),
  );
  return [...new Set(scored.map(({ game }) => game))].sort().map((game) => {
    const scenarioScores = scored.filter((score) => score.game === game);
    const mean = (key: "inForm" | "unevenness") =>
      scenarioScores.reduce((sum, score) => sum + score[key], 0) / scenarioScores.length;
    return { game, inForm: mean("inForm"), unevenness: mean("unevenness"), moments: scenarioScores.length };
  });
}
