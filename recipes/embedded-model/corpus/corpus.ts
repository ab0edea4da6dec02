import type { RandomStream } from "../../../src/core/random/random-stream.js";
import { askAboutAll, askAboutRow, askEcho } from "./all-at-once.js";
import type { Conversation, Exchange } from "./conversation.js";
import { cardScenarios } from "./games/cards.js";
import { controlScenarios } from "./games/control.js";
import type { ScenarioSampler, Scenario } from "./games/game.js";
import { gridScenarios } from "./games/grids.js";
import { madeUpScenario, menuScenario } from "./games/made-up.js";
import { taskScenarios } from "./games/tasks.js";
import { textWorldScenarios } from "./games/text-world.js";
import { drawCards, drawInventory, drawPositions, drawWordList } from "./lists.js";
import { drawSmallTalk } from "./plain-chat.js";
import { askAbout, askAboutNumbers } from "./reading.js";
import { drawRule } from "./rules.js";

/** How often each family of games is drawn. */
const FAMILIES: readonly (readonly [weight: number, games: () => readonly ScenarioSampler[]])[] = [
  [6, controlScenarios],
  [3, cardScenarios],
  [3, gridScenarios],
  [1, textWorldScenarios],
  [2, taskScenarios],
  [3, () => [madeUpScenario]],
  [2, () => [menuScenario]],
];

/** The kinds of conversations. */
const KINDS = [
  "actions",
  "play",
  "questions",
  "readings",
  "rules",
  "rows",
  "numbers",
  "echo",
  "passages",
  "chat",
] as const;
type Kind = (typeof KINDS)[number];

/**
 * How often each kind is drawn until a share of the training is done: first mostly what holds many
 * answers in few tokens. What is above 1 is the second stage, with actions above all: what rules
 * taught must not tilt them.
 */
const PHASES: readonly { readonly until: number; readonly weights: readonly number[] }[] = [
  { until: 0.25, weights: [1, 0, 0.5, 2, 0, 8, 1, 5, 0.5, 0] },
  { until: 0.6, weights: [1, 0.2, 3, 4, 1.5, 6, 1, 1, 1, 0] },
  { until: 0.92, weights: [1.5, 0.4, 3, 3, 4, 4, 1, 1, 1, 0.1] },
  { until: 1, weights: [6, 0.4, 3, 2, 3, 2, 1, 0.5, 1, 0.1] },
  { until: 2, weights: [12, 0.4, 2, 2, 1, 2, 0.5, 0.5, 0.5, 0.2] },
];

/** How many actions of one observation are given at once, where there are more. */
const MAX_ACTIONS = 6;
/**
 * How many questions are asked about one text, and how many observations are shown under one rule.
 */
const QUESTIONS_PER_TEXT = 8;
const OBSERVATIONS_PER_RULE = 4;

/**
 * What the model is taught: how to answer in form, and to read what it is shown. Never which action
 * is good.
 */
export class Corpus {
  private readonly families = FAMILIES.map(([weight, games]) => [weight, games()] as const);

  /**
   * The next conversations; several begin with one text and differ in what is asked or answered.
   * `done` is 0 to 1, in the second stage 1 to 2.
   */
  draw(random: RandomStream, progress = 1): readonly Conversation[] {
    const { weights } = PHASES.find(({ until }) => progress < until) ?? PHASES[PHASES.length - 1];
    const kind: Kind = weightedChoice(KINDS, (kind) => weights[KINDS.indexOf(kind)], random);
    switch (kind) {
      case "actions":
        return this.drawActions(random);
      case "play":
        return [this.drawEpisode(random)];
      case "questions":
        return this.questions(random);
      case "readings":
        return this.drawReadings(random);
      case "rules":
        return this.drawRuleFollowing(random);
      case "numbers":
        return [askInSequence(random, random.integers(1, 5), () => askAboutNumbers(random))];
      case "rows":
        return askAboutText(askAboutRow(random, QUESTIONS_PER_TEXT / 2), random);
      case "echo":
        return [askInSequence(random, random.integers(1, 3), () => askEcho(random))];
      case "passages":
        return drawPassage(random);
      case "chat":
        return [drawSmallTalk(random)];
    }
  }

  drawScenario(random: RandomStream): Scenario {
    const [, games] = weightedChoice(this.families, ([weight]) => weight, random);
    return random.choice(games)(random);
  }

  /**
   * One observation and an action. All actions are given together, so that none is learnt to be
   * likelier.
   */
  private drawActions(random: RandomStream): readonly Conversation[] {
    const { system, observe } = this.drawScenario(random);
    const { text, validCompletions } = observe(random);
    const chosen = random.sampleIndices(validCompletions.length, Math.min(validCompletions.length, MAX_ACTIONS));
    const isOneMessage = random.random() < 0.2;
    const user = isOneMessage ? `${system}\n${text}` : text;
    return chosen.map((i) => {
      const exchanges = [{ skill: "action", user, assistant: validCompletions[i] }];
      return isOneMessage ? { exchanges } : { system, exchanges };
    });
  }

  /** Some turns of one game with random actions. */
  private drawEpisode(random: RandomStream): Conversation {
    const { system, observe } = this.drawScenario(random);
    const exchanges = Array.from({ length: random.integers(2, 6) }, () => {
      const { text, validCompletions } = observe(random);
      return { skill: "action", user: text, assistant: random.choice(validCompletions) };
    });
    return { system, exchanges };
  }

  /** Questions about one observation. */
  private questions(random: RandomStream): readonly Conversation[] {
    for (;;) {
      const { system, observe } = this.drawScenario(random);
      const now = observe(random);
      if (askAbout(now, random) === undefined) continue;
      const questions = Array.from({ length: QUESTIONS_PER_TEXT }, () => askAbout(now, random)!);
      return askAboutText({ text: `${now.text}\n`, questions }, random, random.random() < 0.4 ? system : undefined);
    }
  }

  /** Questions about all numbers of one observation. */
  private drawReadings(random: RandomStream): readonly Conversation[] {
    for (;;) {
      const { text, quantities = [] } = this.drawScenario(random).observe(random);
      if (quantities.length < 2) continue;
      const questions = Array.from({ length: QUESTIONS_PER_TEXT / 2 }, () => askAboutAll(quantities, random));
      return askAboutText({ text: `${text}\n`, questions }, random);
    }
  }

  /** Actions by a rule that is told: before several observations, or with each. */
  private drawRuleFollowing(random: RandomStream): readonly Conversation[] {
    for (;;) {
      const { system, observe } = this.drawScenario(random);
      const moments = Array.from({ length: OBSERVATIONS_PER_RULE }, () => observe(random));
      const rule = drawRule(moments[0], random);
      if (rule === undefined) continue;
      const isRuleFirst = random.random() < 0.7;
      const systemPrompt = random.choice(isRuleFirst ? [rule.text, `${system} ${rule.text}`] : [system, undefined]);
      const exchanges = moments.map((now) => ({
        skill: rule.skill,
        user: isRuleFirst ? now.text : `${now.text}\n${rule.text}`,
        assistant: rule.answer(now),
      }));
      return splitOrJoin(exchanges, random, systemPrompt);
    }
  }
}

/** What is asked about a text: each question behind the text by itself, or one after another. */
function askAboutText(
  { text, questions }: { readonly text: string; readonly questions: readonly Exchange[] },
  random: RandomStream,
  system?: string,
): readonly Conversation[] {
  const withText = (question: Exchange) => ({ ...question, user: text + question.user });
  if (random.random() < 0.8) return questions.map((question) => ({ system, exchanges: [withText(question)] }));
  const [first, ...others] = questions.slice(0, random.integers(2, 5));
  return [{ system, exchanges: [withText(first), ...others] }];
}

/** Turns that do not need one another, as conversations of one turn each or as one conversation. */
function splitOrJoin(
  exchanges: readonly Exchange[],
  random: RandomStream,
  system: string | undefined,
): readonly Conversation[] {
  return random.random() < 0.7
    ? exchanges.map((exchange) => ({ system, exchanges: [exchange] }))
    : [{ system, exchanges }];
}

/** Questions one after another, sometimes with a word before them. */
function askInSequence(random: RandomStream, count: number, ask: () => Exchange): Conversation {
  const system = random.random() < 0.2 ? "Answer the question." : undefined;
  return { system, exchanges: Array.from({ length: count }, ask) };
}

function drawPassage(random: RandomStream): readonly Conversation[] {
  const { text, ask } = random.choice([drawWordList, drawWordList, drawInventory, drawPositions, drawCards])(random);
  const questions = Array.from({ length: QUESTIONS_PER_TEXT / 2 }, () => ask(random));
  return askAboutText({ text: `${text} `, questions }, random);
}

function weightedChoice<T>(items: readonly T[], weightOf: (item: T) => number, random: RandomStream): T {
  let remaining = random.uniform(
    0,
    items.reduce((sum, item) => sum + weightOf(item), 0),
  );
  return items.find((item) => (remaining -= weightOf(item)) < 0) ?? items[items.length - 1];
}
