import type { JsonValue } from "../../src/core/json.js";
import {
  Discrete,
  Env,
  SchemaSpace,
  Text,
  type ResetOptions,
  type ResetResult,
  type Space,
  type StepResult,
  type TextInterface,
} from "../../src/envs.js";
import type { World } from "./world.js";

const PRINTABLE = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).join("");

/** A running episode. */
type Position = { readonly state: JsonValue; readonly text: string; readonly isEnd: boolean };

/**
 * A world as an environment. Observation: its text. Action: the text of an action, or the JSON
 * value that it states.
 */
export class WorldEnv extends Env<string, unknown> {
  override readonly observationSpace = new Text(2000, { charset: PRINTABLE });
  override readonly actionSpace: Space<unknown>;
  override readonly text: TextInterface<string, unknown>;
  private position: Position | undefined;

  constructor(private readonly world: World) {
    super();
    const { format = "choices" } = world;
    this.actionSpace =
      typeof format === "object"
        ? new SchemaSpace(format.jsonSchema)
        : format === "text"
          ? new SchemaSpace({ enum: [...listActions(world)] })
          : new Discrete(listActions(world).length);
    this.text = createText(world, this.actionSpace);
  }

  override reset({ seed }: ResetOptions = {}): ResetResult<string> {
    this.reseed(seed);
    return this.observe(this.draw(this.world.start).state, false);
  }

  override step(action: unknown): StepResult<string> {
    this.checkAction(action);
    if (this.position === undefined || this.position.isEnd) throw this.notResetError();
    const { state } = this.position;
    const name = this.nameAction(action);
    if (!this.world.actions(state).includes(name))
      return { ...this.observe(state, false), reward: 0, terminated: false, truncated: false };
    const outcome = this.draw(this.world.step(state, name));
    const next = this.observe(outcome.state, outcome.isEnd);
    return { ...next, reward: outcome.reward, terminated: outcome.isEnd, truncated: false };
  }

  protected override saveState(): JsonValue {
    return this.position ?? null;
  }

  protected override loadState(position: JsonValue): void {
    this.position = (position as Position | null) ?? undefined;
  }

  private observe(state: JsonValue, isEnd: boolean): ResetResult<string> {
    const text = this.world.describe(state, this.random);
    this.position = { state, text, isEnd };
    return { observation: text, info: { actions: [...this.world.actions(state)] } };
  }

  private nameAction(action: unknown): string {
    if (typeof action === "number") return listActions(this.world)[action];
    return this.world.format === "text" ? this.text.formatAction(action) : JSON.stringify(action);
  }

  private draw<Each extends { readonly probability: number }>(outcomes: readonly Each[]): Each {
    let left = this.random.random();
    return outcomes.find(({ probability }) => (left -= probability) < 0) ?? outcomes[outcomes.length - 1];
  }
}

/** Returns the actions of all states that can be reached, in the order in which they are found. */
export function listActions(world: World): readonly string[] {
  const known = actionLists.get(world);
  if (known !== undefined) return known;
  const states = new Map<string, JsonValue>(world.start.map(({ state }) => [JSON.stringify(state), state]));
  const actions = new Set<string>();
  for (const state of states.values())
    for (const action of world.actions(state)) {
      actions.add(action);
      for (const outcome of world.step(state, action))
        if (!outcome.isEnd) states.set(JSON.stringify(outcome.state), outcome.state);
    }
  actionLists.set(world, [...actions]);
  return actionLists.get(world)!;
}

const actionLists = new WeakMap<World, readonly string[]>();

function createText(world: World, actionSpace: Space<unknown>): TextInterface<string, unknown> {
  const { systemPrompt, format = "choices", historyTurns } = world;
  const shared = {
    systemPrompt,
    formatObservation: (observation: string) => observation,
    ...(historyTurns === undefined ? {} : { historyTurns }),
  };
  if (actionSpace instanceof SchemaSpace)
    return {
      ...shared,
      parseAction: (completion) => actionSpace.parse(completion),
      formatAction: (action) => actionSpace.format(action),
      ...(format === "text" ? {} : { jsonSchema: actionSpace.jsonSchema }),
    };
  const actions = listActions(world);
  const areFixed = world.start.every(({ state }) => world.actions(state).length === actions.length);
  return {
    ...shared,
    parseAction: (completion) => {
      const index = actions.indexOf(completion.trim());
      return index === -1 ? undefined : index;
    },
    formatAction: (action) => actions[action as number],
    choices: areFixed ? actions : (_, info) => info.actions as readonly string[],
  };
}
