import { applyDefaults } from "../env-options.js";
import { Box } from "../spaces/box.js";
import { drawPendulum } from "./drawings.js";
import { ClassicControlEnv, toFloat32Array, readNumberOption } from "./classic-control-env.js";
import { pendulumText } from "./text.js";
import { cos, sin } from "./trigonometry.js";
import { GridPolicy, listForces, makeSolverEnv } from "../solvers/grid-solver.js";
const MAX_SPEED = 8;
const MAX_TORQUE = 2;
const TIME_STEP = 0.05;
/** Wraps an angle to [-pi, pi), 0 being upright. */
function normalizeAngle(angle) {
    const fullTurn = 2 * Math.PI;
    const rest = (angle + Math.PI) % fullTurn;
    return (rest < 0 ? rest + fullTurn : rest) - Math.PI;
}
/**
 * Swing a pendulum up and hold it, with a motor too weak to lift it at once. Observation: cosine and sine of the angle
 * (0 is upright), angular velocity. Action: a torque. Equals Gymnasium's Pendulum-v1.
 */
export class PendulumEnv extends ClassicControlEnv {
    observationSpace = new Box([-1, -1, -MAX_SPEED], [1, 1, MAX_SPEED]);
    actionSpace = new Box(-MAX_TORQUE, MAX_TORQUE, { shape: [1] });
    metadata = { renderModes: ["ansi", "rgb_array"], renderFps: 30 };
    text = pendulumText;
    g;
    lastTorque = 0;
    constructor(options = {}) {
        super();
        ({ g: this.g } = applyDefaults("Pendulum", options, { g: 10 }));
    }
    /** Options `xInit` and `yInit` bound the initial angle and velocity symmetrically. Defaults: pi and 1. */
    reset({ seed, options } = {}) {
        this.reseed(seed);
        const angle = readNumberOption(options, "xInit", Math.PI);
        const velocity = readNumberOption(options, "yInit", 1);
        this.state = [this.random.uniform(-angle, angle), this.random.uniform(-velocity, velocity)];
        this.lastTorque = 0;
        return { observation: this.observation(this.state), info: {} };
    }
    /** A torque beyond the bounds is clipped. The reward depends on the state before the step. */
    step(action) {
        const requestedTorque = this.checkForce(action);
        const state = this.requireState();
        const torque = Math.min(Math.max(requestedTorque, -MAX_TORQUE), MAX_TORQUE);
        const [angle, velocity] = state;
        const normalizedAngle = normalizeAngle(angle);
        // The torque and its factors are float32.
        const torqueCost = Math.fround(Math.fround(0.001) * Math.fround(torque * torque));
        const cost = normalizedAngle * normalizedAngle + 0.1 * (velocity * velocity) + torqueCost;
        const acceleration = ((3 * this.g) / 2) * sin(angle) + Math.fround(3 * torque);
        const speed = Math.min(Math.max(velocity + acceleration * TIME_STEP, -MAX_SPEED), MAX_SPEED);
        this.state = [angle + speed * TIME_STEP, speed];
        this.lastTorque = torque;
        return { observation: this.observation(this.state), reward: -cost, terminated: false, truncated: false, info: {} };
    }
    observation([angle, velocity]) {
        return toFloat32Array([cos(angle), sin(angle), velocity]);
    }
    draw(mode, [angle]) {
        return drawPendulum(mode, angle, this.lastTorque);
    }
    saveState() {
        return { state: super.saveState(), lastTorque: this.lastTorque };
    }
    loadState(json) {
        const { state, lastTorque } = json;
        super.loadState(state);
        this.lastTorque = lastTorque;
    }
}
function createPendulumExpert(env) {
    const policy = new GridPolicy({
        env: makeSolverEnv(env),
        axes: [
            { low: -Math.PI, high: Math.PI, points: 121 },
            { low: -8, high: 8, points: 101 },
        ],
        actions: listForces(2, 9),
        discount: 0.99,
        sweeps: 200,
        stateAt: (angle, velocity) => ({ state: [angle, velocity], lastTorque: 0 }),
        coordinates: ([cosine, sine, velocity]) => [Math.atan2(sine, cosine), velocity],
    });
    return (observation) => policy.act(observation);
}
export const pendulumEnvs = [
    {
        id: "Pendulum-v1",
        entryPoint: (options) => new PendulumEnv(options),
        maxEpisodeSteps: 200,
        summary: "swing a pendulum up and hold it",
        knownReturns: { random: -1232, best: -140.7, basis: "measured" },
        expert: createPendulumExpert,
    },
];
