import type { Action } from "../logic/action.js";
import { Facts } from "../logic/facts.js";
import type { KnowledgeBase } from "../logic/knowledge-base.js";
import { ActionTree } from "./action-tree.js";
import { type Quest, QuestProgress, TRIGGER } from "./quest-progress.js";

/** Facts, valid actions and quest progress of a running game. */
export class GameProgress {
  readonly facts: Facts;
  /** Actions that the rules allow now. */
  validActions: readonly Action[];
  private readonly quests: readonly QuestProgress[];

  constructor(
    private readonly knowledge: KnowledgeBase,
    startingFacts: Facts,
    quests: readonly Quest[],
  ) {
    this.facts = new Facts(startingFacts);
    this.validActions = this.facts.applicableActions(knowledge);
    this.quests = quests.map((quest) => new QuestProgress(quest, knowledge));
    for (const quest of this.quests) quest.update(undefined, this.facts);
  }

  /** Applies an action and updates the quests. */
  update(action: Action): void {
    this.facts.apply(action);
    this.validActions = this.facts.applicableActions(this.knowledge);
    for (const quest of this.quests) quest.update(action, this.facts);
  }

  /** Whether all required quests are completed. */
  get completed(): boolean {
    return (
      this.quests.length > 0 &&
      this.quests.every((progress) => progress.completed || !progress.completable || progress.quest.optional)
    );
  }

  /** Whether a required quest has failed or became impossible. */
  get failed(): boolean {
    return this.quests.some((progress) => progress.failed && !progress.quest.optional);
  }

  /** Sum of the rewards of completed quests. */
  get score(): number {
    return this.quests.reduce((sum, { quest, completions }) => sum + quest.reward * completions, 0);
  }

  /**
   * Returns the actions that win the game from here; undefined when it is over or none are known.
   */
  winningPolicy(): readonly Action[] | undefined {
    if (this.quests.length === 0 || this.completed || this.failed) return undefined;
    const open = this.quests.filter((progress) => progress.completable && !progress.done && !progress.quest.optional);
    const trees = open.map((progress) => progress.tree);
    if (!trees.every((tree) => tree !== undefined)) return undefined;
    return ActionTree.merge(this.knowledge, trees)
      .flatten()
      .filter((action) => action.name !== TRIGGER);
  }
}
