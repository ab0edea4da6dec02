import type { Env } from "../env.js";
import type { JsonValue } from "../../core/json.js";
import { RandomStream } from "../../core/random/random-stream.js";

/** One coordinate of the state, with `points` evenly spaced values. */
interface Axis {
  readonly low: number;
  readonly high: number;
  readonly points: number;
}

/** A deterministic environment whose state is two numbers. */
export interface GridProblem<Observation, Action> {
  readonly env: Env<Observation, Action>;
  readonly axes: readonly [Axis, Axis];
  readonly actions: readonly Action[];
  readonly discount: number;
  readonly sweeps: number;
  /** Returns the environment's saved state at two coordinates. */
  readonly stateAt: (first: number, second: number) => JsonValue;
  readonly coordinates: (observation: Observation) => readonly [number, number];
}

/** The four grid points around a state, with their bilinear weights. */
interface Interpolation {
  readonly corner: number;
  readonly alongFirst: number;
  readonly alongSecond: number;
}

/**
 * A policy from value iteration on a grid with bilinear interpolation. The environment is stepped
 * from every grid point, and once per action to choose among them.
 */
export class GridPolicy<Observation, Action> {
  private readonly random = new RandomStream(0).getState();
  private readonly values: Float64Array;

  constructor(private readonly problem: GridProblem<Observation, Action>) {
    const { axes, actions, sweeps, discount } = problem;
    const count = axes[0].points * axes[1].points;
    const rewards = new Float64Array(count * actions.length);
    const successors: (Interpolation | undefined)[] = [];
    for (let node = 0; node < count; node++) {
      const gridPoint = this.gridPoint(node);
      actions.forEach((action, i) => {
        const { reward, next } = this.tryAction(gridPoint, action);
        rewards[node * actions.length + i] = reward;
        successors.push(next);
      });
    }
    this.values = new Float64Array(count);
    for (let sweep = 0; sweep < sweeps; sweep++) {
      for (let node = 0; node < count; node++) {
        let best = -Infinity;
        for (let i = node * actions.length; i < (node + 1) * actions.length; i++)
          best = Math.max(best, rewards[i] + discount * this.interpolateValue(successors[i]));
        this.values[node] = best;
      }
    }
  }

  /** Chooses the action with the best reward plus discounted next value. */
  act(observation: Observation): Action {
    const { actions, coordinates, discount } = this.problem;
    const gridPoint = coordinates(observation);
    const actionValues = actions.map((action) => {
      const { reward, next } = this.tryAction(gridPoint, action);
      return reward + discount * this.interpolateValue(next);
    });
    return actions[actionValues.indexOf(Math.max(...actionValues))];
  }

  private tryAction(
    gridPoint: readonly [number, number],
    action: Action,
  ): { reward: number; next: Interpolation | undefined } {
    const { env, stateAt, coordinates } = this.problem;
    env.setState({ random: this.random, state: stateAt(...gridPoint) });
    const result = env.step(action);
    if (result instanceof Promise) throw new TypeError("A grid policy needs a synchronous environment.");
    return { reward: result.reward, next: result.terminated ? undefined : this.blend(coordinates(result.observation)) };
  }

  private gridPoint(node: number): [number, number] {
    const [first, second] = this.problem.axes;
    const at = ({ low, high, points }: Axis, i: number) => low + ((high - low) * i) / (points - 1);
    return [at(first, Math.floor(node / second.points)), at(second, node % second.points)];
  }

  private blend([a, b]: readonly [number, number]): Interpolation {
    const [first, second] = this.problem.axes;
    const locate = ({ low, high, points }: Axis, value: number) => {
      const position = Math.min(Math.max(((value - low) / (high - low)) * (points - 1), 0), points - 1);
      const cell = Math.min(Math.floor(position), points - 2);
      return { cell, part: position - cell };
    };
    const [one, two] = [locate(first, a), locate(second, b)];
    return { corner: one.cell * second.points + two.cell, alongFirst: one.part, alongSecond: two.part };
  }

  private interpolateValue(blend: Interpolation | undefined): number {
    if (blend === undefined) return 0;
    const { corner, alongFirst, alongSecond } = blend;
    const { values } = this;
    const across = corner + this.problem.axes[1].points;
    const near = values[corner] + alongSecond * (values[corner + 1] - values[corner]);
    const far = values[across] + alongSecond * (values[across + 1] - values[across]);
    return near + alongFirst * (far - near);
  }
}

/**
 * Makes a second instance of a registered environment, without wrappers, to be stepped from grid
 * points.
 */
export function makeSolverEnv<Observation, Action>({ spec }: Env): Env<Observation, Action> {
  if (spec === undefined) throw new TypeError("A grid policy needs an environment from make().");
  return spec.entryPoint(spec.options).unwrapped as Env<Observation, Action>;
}

/** Lists `count` forces spread evenly over [-limit, limit]. */
export function listForces(limit: number, count: number): Float32Array[] {
  return Array.from({ length: count }, (_, i) => Float32Array.of(limit * ((2 * i) / (count - 1) - 1)));
}
