import { createChoiceText } from "../text-parsing.js";
import {
  decodeState,
  IN_TAXI,
  STOP_POSITIONS,
  getActionMask,
  canMove,
  applyMove,
  DROP_OFF,
  encodeState,
  PICK_UP,
  findStop,
  STOPS,
  TAXI_MOVES,
  NUM_TAXI_STATES,
  type TaxiState,
} from "./grids.js";
import type { RenderFrame, RenderMode, ResetOptions, ResetResult } from "../env.js";
import type { Info } from "../info.js";
import type { JsonValue } from "../../core/json.js";
import { checkProbability, applyDefaults } from "../env-options.js";
import { drawTaxi } from "./drawings.js";
import { tabulate, TabularEnv, type Transition, type TransitionTable } from "./tabular-env.js";
import type { Registration } from "../registry/env-registry.js";
import { createTabularExpert } from "../solvers/tabular-solver.js";

const CHOICES = ["south", "north", "east", "west", "pick up", "drop off"];

const formatPosition = ([row, column]: readonly [number, number]) => `row ${row}, column ${column}`;

/** Places are rows and columns counted from 0, row 0 in the north. */
const taxiText = createChoiceText({
  systemPrompt:
    "Drive the taxi to the passenger, pick up, drive to the destination and drop off. Rows count from north to south, columns from west to east. Answer south, north, east, west, pick up or drop off.",
  formatObservation: (state: number) => {
    const { row, column, passenger, destination } = decodeState(state);
    const mask = getActionMask(state);
    const passengerText = passenger === IN_TAXI ? "in taxi" : `at ${formatPosition(STOP_POSITIONS[passenger])}`;
    const openDirections = CHOICES.slice(0, 4).filter((_, action) => mask[action] === 1);
    return `Taxi at ${formatPosition([row, column])}. Passenger ${passengerText}. Destination ${formatPosition(STOP_POSITIONS[destination])}. Open: ${openDirections.join(" ")}.`;
  },
  names: CHOICES,
  synonyms: { pickup: 4, dropoff: 5 },
});

const NUM_ACTIONS = 6;
/** The moves to the left and the right of each heading, as the driver sees them. */
const LEFT_OF = [2, 3, 1, 0];
const RIGHT_OF = [3, 2, 0, 1];

/** Options of `TaxiEnv`. */
export interface TaxiOptions {
  /** Whether a move may drift to the left or the right. */
  readonly isRainy?: boolean;
  /** Whether the passenger may change the destination during the ride. */
  readonly ficklePassenger?: boolean;
  /** Probability that a move in the rain goes in its own direction. */
  readonly rainyProbability?: number;
  /** Probability that a fickle passenger changes the destination. */
  readonly fickleProbability?: number;
}

/**
 * Pick up a passenger at one of four stops and drive to another (Dietterich 2000). Observation: the
 * taxi's position, the passenger's and the destination in one number. Actions: south, north, east,
 * west, pick up, drop off. Equals Gymnasium's Taxi-v4.
 */
export class TaxiEnv extends TabularEnv {
  override readonly text = taxiText;
  private readonly ficklePassenger: boolean;
  private readonly fickleProbability: number;
  /** Whether the passenger will still change the destination in this episode. */
  private willChange = false;

  constructor(options: TaxiOptions = {}) {
    const rules = applyDefaults("Taxi", options, {
      isRainy: false,
      ficklePassenger: false,
      rainyProbability: 0.8,
      fickleProbability: 0.3,
    });
    checkProbability("Taxi", "rainyProbability", rules.rainyProbability);
    checkProbability("Taxi", "fickleProbability", rules.fickleProbability);
    const isStart = tabulate(NUM_TAXI_STATES, (state) => {
      const { passenger, destination } = decodeState(state);
      return passenger !== IN_TAXI && passenger !== destination;
    });
    const count = isStart.filter(Boolean).length;
    super(
      buildTransitions(rules.isRainy ? rules.rainyProbability : undefined),
      isStart.map((start) => (start ? 1 / count : 0)),
    );
    this.ficklePassenger = rules.ficklePassenger;
    this.fickleProbability = rules.fickleProbability;
  }

  override reset(options: ResetOptions = {}): ResetResult<number> {
    const result = super.reset(options);
    this.willChange = this.ficklePassenger && this.random.random() < this.fickleProbability;
    return result;
  }

  /** A fickle passenger decides at the first move with the passenger inside. */
  protected override nextState(from: number, to: number): number {
    if (!this.willChange) return to;
    const [before, after] = [decodeState(from), decodeState(to)];
    const hasMoved = before.row !== after.row || before.column !== after.column;
    if (before.passenger !== IN_TAXI || !hasMoved) return to;
    this.willChange = false;
    const others = tabulate(STOPS.length, (stop) => stop).filter((stop) => stop !== before.destination);
    return encodeState({ ...after, destination: this.random.choice(others) });
  }

  protected override info(probability: number, state: number): Info {
    return { prob: probability, actionMask: getActionMask(state) };
  }

  protected override draw(mode: RenderMode, state: number): RenderFrame {
    return drawTaxi(mode, decodeState(state), this.lastAction);
  }

  protected override saveState(): JsonValue {
    return { table: super.saveState(), willChange: this.willChange };
  }

  protected override loadState(json: JsonValue): void {
    const { table, willChange } = json as { table: JsonValue; willChange: boolean };
    super.loadState(table);
    this.willChange = willChange;
  }
}

/** `intendedProbability` undefined means no rain. */
function buildTransitions(intendedProbability: number | undefined): TransitionTable {
  return tabulate(NUM_TAXI_STATES, (state) => {
    const taxi = decodeState(state);
    return tabulate(NUM_ACTIONS, (action) => {
      if (action === PICK_UP) return [pickUp(taxi)];
      if (action === DROP_OFF) return [dropOff(taxi)];
      const isBlocked = !canMove(taxi.row, taxi.column, TAXI_MOVES[action]);
      const createOutcome = (takenAction: number, probability: number): Transition => {
        // A blocked move does not drift in the rain either.
        const [row, column] = isBlocked
          ? [taxi.row, taxi.column]
          : applyMove(taxi.row, taxi.column, TAXI_MOVES[takenAction]);
        return { probability, state: encodeState({ ...taxi, row, column }), reward: -1, terminated: false };
      };
      if (intendedProbability === undefined) return [createOutcome(action, 1)];
      const sideProbability = (1 - intendedProbability) / 2;
      return [
        createOutcome(action, intendedProbability),
        createOutcome(LEFT_OF[action], sideProbability),
        createOutcome(RIGHT_OF[action], sideProbability),
      ];
    });
  });
}

function pickUp(taxi: TaxiState): Transition {
  const isThere = taxi.passenger !== IN_TAXI && findStop(taxi.row, taxi.column) === taxi.passenger;
  const passenger = isThere ? IN_TAXI : taxi.passenger;
  return { probability: 1, state: encodeState({ ...taxi, passenger }), reward: isThere ? -1 : -10, terminated: false };
}

function dropOff(taxi: TaxiState): Transition {
  const stop = findStop(taxi.row, taxi.column);
  if (taxi.passenger !== IN_TAXI || stop < 0)
    return { probability: 1, state: encodeState(taxi), reward: -10, terminated: false };
  const isRight = stop === taxi.destination;
  return {
    probability: 1,
    state: encodeState({ ...taxi, passenger: stop }),
    reward: isRight ? 20 : -1,
    terminated: isRight,
  };
}

export const taxiEnvs: readonly Registration[] = [
  {
    id: "Taxi-v4",
    entryPoint: (options) => new TaxiEnv(options),
    maxEpisodeSteps: 200,
    rewardThreshold: 8,
    summary: "pick up a passenger and drop them off",
    knownReturns: { random: -771.09, best: 7.93, basis: "exact" },
    expert: createTabularExpert,
  },
];
