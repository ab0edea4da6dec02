import type { RandomStream } from "../../../src/tensor/random.js";
import { askAboutAll, askAboutRow, echo } from "./all-at-once.js";
import type { Conversation, Exchange } from "./conversation.js";
import { cardGames } from "./games/cards.js";
import { controlGames } from "./games/control.js";
import type { DrawGame, Game } from "./games/game.js";
import { gridGames } from "./games/grids.js";
import { madeUpGame, menuGame } from "./games/made-up.js";
import { taskGames } from "./games/tasks.js";
import { textWorldGames } from "./games/text-world.js";
import { cards, inventory, positions, wordList } from "./lists.js";
import { plainChat } from "./plain-chat.js";
import { askAbout, askAboutNumbers } from "./reading.js";
import { drawRule } from "./rules.js";

/** How often each family of games is drawn. */
const FAMILIES: readonly (readonly [weight: number, games: () => readonly DrawGame[]])[] = [
  [6, controlGames],
  [3, cardGames],
  [3, gridGames],
  [1, textWorldGames],
  [2, taskGames],
  [3, () => [madeUpGame]],
  [2, () => [menuGame]],
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
 * How often each kind is drawn until a share of the training is done: first mostly what holds many answers in few tokens. What is
 * above 1 is the second stage, with actions above all: what rules taught must not tilt them.
 */
const PHASES: readonly { readonly until: number; readonly weights: readonly number[] }[] = [
  { until: 0.25, weights: [1, 0, 0.5, 2, 0, 8, 1, 5, 0.5, 0] },
  { until: 0.6, weights: [1, 0.2, 3, 4, 1.5, 6, 1, 1, 1, 0] },
  { until: 0.92, weights: [1.5, 0.4, 3, 3, 4, 4, 1, 1, 1, 0.1] },
  { until: 1, weights: [6, 0.4, 3, 2, 3, 2, 1, 0.5, 1, 0.1] },
  { until: 2, weights: [12, 0.4, 2, 2, 1, 2, 0.5, 0.5, 0.5, 0.2] },
];

/** How many actions of one observation are given at once, where there are more. */
const MOST_ACTIONS = 6;
/** How many questions are asked about one text, and how many observations are shown under one rule. */
const QUESTIONS = 8;
const OBSERVATIONS = 4;

/** What the model is taught: how to answer in form, and to read what it is shown. Never which action is good. */
export class Corpus {
  private readonly families = FAMILIES.map(([weight, games]) => [weight, games()] as const);

  /** The next conversations; several begin with one text and differ in what is asked or answered. `done` is 0 to 1, in the second stage 1 to 2. */
  draw(random: RandomStream, done = 1): readonly Conversation[] {
    const { weights } = PHASES.find(({ until }) => done < until) ?? PHASES[PHASES.length - 1];
    const kind: Kind = weightedChoice(KINDS, (kind) => weights[KINDS.indexOf(kind)], random);
    switch (kind) {
      case "actions":
        return this.actions(random);
      case "play":
        return [this.play(random)];
      case "questions":
        return this.questions(random);
      case "readings":
        return this.readings(random);
      case "rules":
        return this.followRule(random);
      case "numbers":
        return [together(random, random.integers(1, 5), () => askAboutNumbers(random))];
      case "rows":
        return aboutText(askAboutRow(random, QUESTIONS / 2), random);
      case "echo":
        return [together(random, random.integers(1, 3), () => echo(random))];
      case "passages":
        return passage(random);
      case "chat":
        return [plainChat(random)];
    }
  }

  drawGame(random: RandomStream): Game {
    const [, games] = weightedChoice(this.families, ([weight]) => weight, random);
    return random.choice(games)(random);
  }

  /** One observation and an action. All actions are given together, so that none is learnt to be likelier. */
  private actions(random: RandomStream): readonly Conversation[] {
    const { system, moment } = this.drawGame(random);
    const { text, replies } = moment(random);
    const chosen = random.sampleIndices(replies.length, Math.min(replies.length, MOST_ACTIONS));
    const isOneMessage = random.random() < 0.2;
    const user = isOneMessage ? `${system}\n${text}` : text;
    return chosen.map((i) => {
      const exchanges = [{ skill: "action", user, assistant: replies[i] }];
      return isOneMessage ? { exchanges } : { system, exchanges };
    });
  }

  /** Some turns of one game with random actions. */
  private play(random: RandomStream): Conversation {
    const { system, moment } = this.drawGame(random);
    const exchanges = Array.from({ length: random.integers(2, 6) }, () => {
      const { text, replies } = moment(random);
      return { skill: "action", user: text, assistant: random.choice(replies) };
    });
    return { system, exchanges };
  }

  /** Questions about one observation. */
  private questions(random: RandomStream): readonly Conversation[] {
    for (;;) {
      const { system, moment } = this.drawGame(random);
      const now = moment(random);
      if (askAbout(now, random) === undefined) continue;
      const questions = Array.from({ length: QUESTIONS }, () => askAbout(now, random)!);
      return aboutText({ text: `${now.text}\n`, questions }, random, random.random() < 0.4 ? system : undefined);
    }
  }

  /** Questions about all numbers of one observation. */
  private readings(random: RandomStream): readonly Conversation[] {
    for (;;) {
      const { text, quantities = [] } = this.drawGame(random).moment(random);
      if (quantities.length < 2) continue;
      const questions = Array.from({ length: QUESTIONS / 2 }, () => askAboutAll(quantities, random));
      return aboutText({ text: `${text}\n`, questions }, random);
    }
  }

  /** Actions by a rule that is told: before several observations, or with each. */
  private followRule(random: RandomStream): readonly Conversation[] {
    for (;;) {
      const { system, moment } = this.drawGame(random);
      const moments = Array.from({ length: OBSERVATIONS }, () => moment(random));
      const rule = drawRule(moments[0], random);
      if (rule === undefined) continue;
      const isToldFirst = random.random() < 0.7;
      const told = random.choice(isToldFirst ? [rule.text, `${system} ${rule.text}`] : [system, undefined]);
      const exchanges = moments.map((now) => ({
        skill: rule.skill,
        user: isToldFirst ? now.text : `${now.text}\n${rule.text}`,
        assistant: rule.answer(now),
      }));
      return apartOrTogether(exchanges, random, told);
    }
  }
}

/** What is asked about a text: each question behind the text by itself, or one after another. */
function aboutText(
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
function apartOrTogether(
  exchanges: readonly Exchange[],
  random: RandomStream,
  system: string | undefined,
): readonly Conversation[] {
  return random.random() < 0.7
    ? exchanges.map((exchange) => ({ system, exchanges: [exchange] }))
    : [{ system, exchanges }];
}

/** Questions one after another, sometimes with a word before them. */
function together(random: RandomStream, count: number, ask: () => Exchange): Conversation {
  const system = random.random() < 0.2 ? "Answer the question." : undefined;
  return { system, exchanges: Array.from({ length: count }, ask) };
}

function passage(random: RandomStream): readonly Conversation[] {
  const { text, ask } = random.choice([wordList, wordList, inventory, positions, cards])(random);
  const questions = Array.from({ length: QUESTIONS / 2 }, () => ask(random));
  return aboutText({ text: `${text} `, questions }, random);
}

function weightedChoice<T>(items: readonly T[], weightOf: (item: T) => number, random: RandomStream): T {
  let left = random.uniform(
    0,
    items.reduce((sum, item) => sum + weightOf(item), 0),
  );
  return items.find((item) => (left -= weightOf(item)) < 0) ?? items[items.length - 1];
}
