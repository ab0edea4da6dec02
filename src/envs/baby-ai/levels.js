import { findMatches } from "./mission.js";
import { DRAWN_COLORS, LevelRejected } from "./level-builder.js";
const MAX_DESCRIPTIONS = 101;
const MIDDLE = [1, 1];
const SIDES = ["left", "right", "front", "behind"];
/** Describes a thing by kind and color. */
function describe(level, number) {
    const { kind, color } = level.things[number];
    return { kind, color };
}
const createRooms = (size = 8, columns = 1, rows = columns) => ({ size, columns, rows });
const goTo = (target) => ({ type: "go to", target });
const open = (target) => ({ type: "open", target });
const putNext = (level, [a, b]) => ({
    type: "put",
    target: describe(level, a),
    nextTo: describe(level, b),
});
const goToRedBall = (distractors, isGrey = false) => ({
    layout: createRooms(),
    build(level) {
        level.placeAgent();
        level.placeObject({ kind: "ball", color: "red" });
        const clutter = level.clutter(distractors, { unique: false });
        if (isGrey)
            level.recolor("grey", clutter);
        level.requireReachable();
        return goTo({ kind: "ball", color: "red" });
    },
});
const goToObject = (size) => ({
    layout: createRooms(size),
    build(level) {
        level.placeAgent();
        return goTo(describe(level, level.clutter(1)[0]));
    },
});
const goToLocal = (size, distractors = 8) => ({
    layout: createRooms(size),
    build(level) {
        level.placeAgent();
        const clutter = level.clutter(distractors, { unique: false });
        level.requireReachable();
        return goTo(describe(level, level.pick(clutter)));
    },
});
const pickUpByPlace = {
    layout: createRooms(),
    build(level) {
        level.random.uniform();
        level.connect();
        level.clutter(8, { unique: false });
        level.placeAgent();
        level.requireReachable();
        for (let i = 0; i < MAX_DESCRIPTIONS; i++) {
            const color = level.pick([undefined, ...DRAWN_COLORS]);
            const kind = level.pick(["box", "ball", "key"]);
            const side = level.bool() ? level.pick(SIDES) : undefined;
            const target = { kind, color, side };
            if (findMatches(level.world, level.layout, target).things.length > 0)
                return { type: "pick up", target };
        }
        throw new LevelRejected();
    },
};
const pickUpDistractor = {
    layout: createRooms(7),
    build(level) {
        const clutter = level.clutter(5);
        level.placeAgent();
        const { kind, color } = describe(level, level.pick(clutter));
        const target = level.pick([{ kind }, { color }, { kind, color }]);
        return { type: "pick up", target };
    },
};
const putNextLocal = (size, count = 8) => ({
    layout: createRooms(size),
    build(level) {
        level.placeAgent();
        const clutter = level.clutter(count);
        level.requireReachable();
        return putNext(level, level.subset(clutter, 2));
    },
});
const putNextAcross = (size, count) => ({
    layout: createRooms(size, 2, 1),
    maxSteps: 8 * size ** 2,
    build(level) {
        level.placeAgent([0, 0]);
        const left = level.clutter(count, { room: [0, 0] });
        const right = level.clutter(count, { room: [1, 0] });
        level.removeRightWall([0, 0]);
        const pair = [level.pick(left), level.pick(right)];
        return putNext(level, level.bool() ? pair.reverse() : pair);
    },
});
const openDoor = (given) => ({
    layout: createRooms(8, 3),
    build(level) {
        const doors = level
            .subset(DRAWN_COLORS, 4)
            .map((color, side) => level.addDoor(MIDDLE, { side, color, isLocked: false }));
        const { color } = level.things[doors[0]];
        const selection = given ?? level.pick(["color", "place"]);
        const side = selection === "place" ? level.pick(SIDES) : undefined;
        level.placeAgent(MIDDLE);
        return open(side === undefined ? { kind: "door", color } : { kind: "door", side });
    },
});
const openRedDoor = {
    layout: createRooms(5, 2, 1),
    build(level) {
        level.addDoor([0, 0], { side: 0, color: "red", isLocked: false });
        level.placeAgent([0, 0]);
        return open({ kind: "door", color: "red" });
    },
};
const unlockLocal = (distractors) => ({
    layout: createRooms(8, 3),
    build(level) {
        const { color } = level.things[level.addDoor(MIDDLE, { isLocked: true })];
        level.placeObject({ kind: "key", color }, MIDDLE);
        level.clutter(distractors, { room: MIDDLE });
        level.placeAgent(MIDDLE);
        return open({ kind: "door" });
    },
});
const keyInBox = {
    layout: createRooms(8, 3),
    build(level) {
        const { color } = level.things[level.addDoor(MIDDLE, { isLocked: true })];
        const contents = level.hide({ kind: "key", color });
        level.place({ kind: "box", color: level.pickColor(), contents }, MIDDLE);
        level.placeAgent(MIDDLE);
        return open({ kind: "door" });
    },
};
const actionObjectDoor = {
    layout: createRooms(7, 3),
    build(level) {
        const things = level.clutter(5, { room: MIDDLE });
        for (let i = 0; i < 4; i++)
            things.push(level.addDoor(MIDDLE, { isLocked: false }));
        level.placeAgent(MIDDLE);
        const target = describe(level, level.pick(things));
        if (level.bool())
            return goTo(target);
        return target.kind === "door" ? open(target) : { type: "pick up", target };
    },
};
const goToDoor = {
    layout: createRooms(7, 3),
    build(level) {
        const doors = Array.from({ length: 4 }, () => level.addDoor(MIDDLE));
        level.placeAgent(MIDDLE);
        return goTo(describe(level, level.pick(doors)));
    },
};
const goToObjectDoor = {
    layout: createRooms(8, 3),
    build(level) {
        level.placeAgent(MIDDLE);
        const things = level.clutter(8, { unique: false, room: MIDDLE });
        for (let i = 0; i < 4; i++)
            things.push(level.addDoor(MIDDLE));
        level.requireReachable();
        return goTo(describe(level, level.pick(things)));
    },
};
/** minigrid's levels by the names of their ids. */
export const LEVELS = {
    GoToRedBallNoDists: goToRedBall(0),
    GoToRedBallGrey: goToRedBall(7, true),
    GoToRedBall: goToRedBall(7),
    GoToObj: goToObject(),
    GoToObjS4: goToObject(4),
    GoToObjS6: goToObject(6),
    GoToLocal: goToLocal(),
    GoToLocalS5N2: goToLocal(5, 2),
    GoToLocalS6N2: goToLocal(6, 2),
    GoToLocalS6N3: goToLocal(6, 3),
    GoToLocalS6N4: goToLocal(6, 4),
    GoToLocalS7N4: goToLocal(7, 4),
    GoToLocalS7N5: goToLocal(7, 5),
    GoToLocalS8N2: goToLocal(8, 2),
    GoToLocalS8N3: goToLocal(8, 3),
    GoToLocalS8N4: goToLocal(8, 4),
    GoToLocalS8N5: goToLocal(8, 5),
    GoToLocalS8N6: goToLocal(8, 6),
    GoToLocalS8N7: goToLocal(8, 7),
    PickupLoc: pickUpByPlace,
    PickupDist: pickUpDistractor,
    PutNextLocal: putNextLocal(),
    PutNextLocalS5N3: putNextLocal(5, 3),
    PutNextLocalS6N4: putNextLocal(6, 4),
    PutNextS4N1: putNextAcross(4, 1),
    PutNextS5N1: putNextAcross(5, 1),
    PutNextS5N2: putNextAcross(5, 2),
    PutNextS6N3: putNextAcross(6, 3),
    PutNextS7N4: putNextAcross(7, 4),
    OpenDoor: openDoor(),
    OpenDoorColor: openDoor("color"),
    OpenDoorLoc: openDoor("place"),
    OpenRedDoor: openRedDoor,
    UnlockLocal: unlockLocal(0),
    UnlockLocalDist: unlockLocal(3),
    KeyInBox: keyInBox,
    ActionObjDoor: actionObjectDoor,
    GoToDoor: goToDoor,
    GoToObjDoor: goToObjectDoor,
};
