import { createCircle, createLine, createPolygon, createRectangle, renderScene } from "../rendering/scene.js";
const WHITE = [255, 255, 255];
const BLACK = [0, 0, 0];
const GRAY = [128, 128, 128];
const WOOD = [202, 152, 101];
const PURPLE = [129, 132, 203];
const RED = [204, 77, 77];
const YELLOW = [204, 204, 0];
/** Draws the cart and the pole, with its angle from upright; positive leans right. */
export function drawCartPole(mode, position, angle) {
    const tip = [position + 1.2 * Math.sin(angle), 0.2 + 1.2 * Math.cos(angle)];
    return renderScene(mode, {
        left: -2.5,
        right: 2.5,
        bottom: -0.4,
        top: 1.6,
        pixels: { width: 600, height: 240 },
        cells: { width: 72, height: 14 },
        background: WHITE,
        drawings: [
            createLine([-2.5, -0.18], [2.5, -0.18], 0.02, BLACK, "-"),
            createLine([0, -0.3], [0, -0.24], 0.02, GRAY, "^"),
            createPolygon(createRectangle(position - 0.25, -0.15, position + 0.25, 0.15), BLACK, "#"),
            createLine([position, 0.2], tip, 0.08, WOOD, "|"),
            createCircle([position, 0.15], 0.06, PURPLE, "o"),
        ],
    });
}
const computeHillHeight = (x) => 0.45 * Math.sin(3 * x) + 0.55;
/** Draws the valley, the flag at the goal, and the car. */
export function drawMountainCar(mode, position, goal) {
    const track = Array.from({ length: 90 }, (_, i) => {
        const x = -1.2 + (1.8 * i) / 90;
        return createLine([x, computeHillHeight(x)], [x + 0.02, computeHillHeight(x + 0.02)], 0.012, BLACK, ".");
    });
    const slope = Math.atan(1.35 * Math.cos(3 * position));
    const [sine, cosine] = [Math.sin(slope), Math.cos(slope)];
    const toScene = (along, up) => [
        position + along * cosine - up * sine,
        computeHillHeight(position) + along * sine + up * cosine,
    ];
    return renderScene(mode, {
        left: -1.2,
        right: 0.6,
        bottom: 0,
        top: 1.2,
        pixels: { width: 600, height: 400 },
        cells: { width: 72, height: 20 },
        background: WHITE,
        drawings: [
            ...track,
            createLine([goal, computeHillHeight(goal)], [goal, computeHillHeight(goal) + 0.15], 0.008, BLACK, "|"),
            createPolygon([
                [goal, computeHillHeight(goal) + 0.15],
                [goal, computeHillHeight(goal) + 0.1],
                [goal + 0.07, computeHillHeight(goal) + 0.125],
            ], YELLOW, ">"),
            createPolygon([toScene(-0.06, 0.03), toScene(0.06, 0.03), toScene(0.06, 0.1), toScene(-0.06, 0.1)], BLACK, "#"),
            createCircle(toScene(-0.035, 0.03), 0.022, GRAY, "o"),
            createCircle(toScene(0.035, 0.03), 0.022, GRAY, "o"),
        ],
    });
}
/** Draws a rod on an axle, angle 0 pointing up; a ring shows the torque. */
export function drawPendulum(mode, angle, torque) {
    const tip = [Math.sin(angle), Math.cos(angle)];
    const arc = Array.from({ length: Math.round(8 * Math.abs(torque)) }, (_, i) => {
        const arcAngle = Math.sign(torque) * (i / 16) * Math.PI;
        return createCircle([0.45 * Math.sin(arcAngle), 0.45 * Math.cos(arcAngle)], 0.03, BLACK, torque > 0 ? ">" : "<");
    });
    return renderScene(mode, {
        left: -1.3,
        right: 1.3,
        bottom: -1.3,
        top: 1.3,
        pixels: { width: 500, height: 500 },
        cells: { width: 44, height: 22 },
        background: WHITE,
        drawings: [
            createLine([0, 0], tip, 0.2, RED, "*"),
            createCircle(tip, 0.1, RED, "@"),
            createCircle([0, 0], 0.06, BLACK, "o"),
            ...arc,
        ],
    });
}
/** Draws two links below the bar, the second angle relative to the first, and the target height. */
export function drawAcrobot(mode, angle1, angle2) {
    const joint = [Math.sin(angle1), -Math.cos(angle1)];
    const tip = [joint[0] + Math.sin(angle1 + angle2), joint[1] - Math.cos(angle1 + angle2)];
    return renderScene(mode, {
        left: -2.2,
        right: 2.2,
        bottom: -2.2,
        top: 2.2,
        pixels: { width: 500, height: 500 },
        cells: { width: 52, height: 26 },
        background: WHITE,
        drawings: [
            createLine([-2.2, 1], [2.2, 1], 0.02, BLACK, "-"),
            createLine([0, 0], joint, 0.2, [0, 204, 204], "*"),
            createLine(joint, tip, 0.2, [0, 204, 204], "+"),
            createCircle([0, 0], 0.1, YELLOW, "o"),
            createCircle(joint, 0.1, YELLOW, "o"),
            createCircle(tip, 0.06, BLACK, "@"),
        ],
    });
}
