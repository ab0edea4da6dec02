import type { RandomStream } from "../../core/random/random-stream.js";
import {
  COLORS,
  EMPTY,
  NO_OBJECT,
  WALL,
  getCellAhead,
  getOffset,
  type GridAgent,
  type ColorName,
  type Kind,
  type WorldObject,
  type World,
} from "./world.js";

/** Colors in the order of draws. */
export const DRAWN_COLORS: readonly ColorName[] = [...COLORS].sort();
const DRAWN_KINDS: readonly Kind[] = ["key", "ball", "box"];
const MAX_RETRIES = 1000;
const MAX_CONNECT_ROUNDS = 5000;

/** Thrown where the drawn level is not valid; the caller draws another. */
export class LevelRejected extends Error {}

/** A room, which shares its walls with its neighbors. */
interface Room {
  readonly left: number;
  readonly top: number;
  /** Cell of the door on each side (right, down, left, up); undefined without a neighbor. */
  readonly doorCells: (number | undefined)[];
  /** Sides that have a door or no wall. */
  readonly isOpenTo: boolean[];
  isLocked: boolean;
}

/** Size of a level: square rooms of `size` cells, walls included. */
export interface Layout {
  readonly size: number;
  readonly columns: number;
  readonly rows: number;
}

/** Column and row of a room. */
export type RoomPosition = readonly [column: number, row: number];

/** Draws a level step by step, with the random numbers of minigrid. */
export class LevelBuilder {
  private readonly width: number;
  private readonly height: number;
  private readonly cells: number[];
  readonly things: WorldObject[] = [];
  /** Cell of each thing; undefined for one inside a box. */
  readonly places: (number | undefined)[] = [];
  agent: GridAgent;
  private readonly rooms: Room[];

  constructor(
    readonly random: RandomStream,
    readonly layout: Layout,
  ) {
    const { size, columns, rows } = layout;
    this.width = (size - 1) * columns + 1;
    this.height = (size - 1) * rows + 1;
    this.cells = Array.from({ length: this.width * this.height }, (_, cell) => {
      const [x, y] = [cell % this.width, Math.floor(cell / this.width)];
      return x % (size - 1) === 0 || y % (size - 1) === 0 ? WALL : EMPTY;
    });
    this.rooms = this.layRooms();
    const middle = Math.floor(size / 2);
    this.agent = {
      x: Math.floor(columns / 2) * (size - 1) + middle,
      y: Math.floor(rows / 2) * (size - 1) + middle,
      direction: 0,
    };
  }

  get world(): World {
    const { width, height, agent } = this;
    return { width, height, agent, cells: [...this.cells], things: [...this.things], carrying: NO_OBJECT };
  }

  /** Draws an integer in [low, high). */
  int(low: number, high: number): number {
    return this.random.integers(low, high);
  }

  pick<T>(values: readonly T[]): T {
    return values[this.int(0, values.length)];
  }

  bool(): boolean {
    return this.int(0, 2) === 0;
  }

  pickColor(): ColorName {
    return this.pick(DRAWN_COLORS);
  }

  /** Draws `count` of the values without replacement. */
  subset<T>(values: readonly T[], count: number): T[] {
    const rest = [...values];
    return Array.from({ length: count }, () => rest.splice(this.int(0, rest.length), 1)[0]);
  }

  /** Draws a room, except for the coordinates that are given. */
  pickRoom([column, row]: Partial<RoomPosition> = []): RoomPosition {
    const { columns, rows } = this.layout;
    return [column ?? this.int(0, columns), row ?? this.int(0, rows)];
  }

  /** Places the agent in a room, facing an empty cell or a wall. */
  placeAgent(given?: Partial<RoomPosition>): void {
    const room = this.pickRoom(given);
    for (;;) {
      this.agent = { x: -1, y: -1, direction: 0 };
      const cell = this.drawCell(room, false);
      const direction = this.int(0, 4);
      this.agent = { x: cell % this.width, y: Math.floor(cell / this.width), direction };
      if (this.cells[getCellAhead(this.world, this.agent)] < 0) return;
    }
  }

  /** Places a thing in a room and returns its number. */
  place(thing: WorldObject, room: RoomPosition = [0, 0]): number {
    const cell = this.drawCell(room, true);
    return this.put(cell, thing);
  }

  /** Adds a thing that lies in no cell. */
  hide(thing: WorldObject): number {
    this.places.push(undefined);
    return this.things.push(thing) - 1;
  }

  /** Draws the color and the kind where they are not given, and places the thing. */
  placeObject({ kind, color }: Partial<WorldObject>, room: RoomPosition = [0, 0]): number {
    const drawnKind = kind ?? this.pick(DRAWN_KINDS);
    return this.place({ kind: drawnKind, color: color ?? this.pickColor() }, room);
  }

  /**
   * Places things in a room, or in rooms that it draws; with `unique`, no two are of one kind and
   * color.
   */
  clutter(count: number, { unique = true, room }: { unique?: boolean; room?: Partial<RoomPosition> } = {}): number[] {
    const added: number[] = [];
    const isPresent = (color: ColorName, kind: Kind) =>
      this.things.some((thing) => thing.color === color && thing.kind === kind);
    while (added.length < count) {
      const color = this.pickColor();
      const kind = this.pick(DRAWN_KINDS);
      if (unique && isPresent(color, kind)) continue;
      added.push(this.place({ kind, color }, this.pickRoom(room)));
    }
    return added;
  }

  /**
   * Adds a door and returns its number; the side (right, down, left, up), color and lock are drawn
   * if not given.
   */
  addDoor(
    position: RoomPosition,
    { side, color, isLocked }: { side?: number; color?: ColorName; isLocked?: boolean } = {},
  ): number {
    const room = this.getRoom(position);
    const drawnSide = side ?? this.pickFreeSide(position);
    const drawnColor = color ?? this.pickColor();
    room.isLocked = isLocked ?? this.bool();
    room.isOpenTo[drawnSide] = true;
    this.getNeighbor(position, drawnSide)!.isOpenTo[(drawnSide + 2) % 4] = true;
    const state = room.isLocked ? "locked" : "closed";
    return this.put(room.doorCells[drawnSide]!, { kind: "door", color: drawnColor, state });
  }

  hasNeighbor(position: RoomPosition, side: number): boolean {
    return this.getRoom(position).doorCells[side] !== undefined;
  }

  isLocked(position: RoomPosition): boolean {
    return this.getRoom(position).isLocked;
  }

  /** Column and row of the agent's room. */
  get agentRoom(): RoomPosition {
    const step = this.layout.size - 1;
    return [Math.floor(this.agent.x / step), Math.floor(this.agent.y / step)];
  }

  /** Removes the wall between a room and its right neighbor. */
  removeRightWall([column, row]: RoomPosition): void {
    const { left, top } = this.getRoom([column, row]);
    const { size } = this.layout;
    for (let i = 1; i < size - 1; i++) this.cells[(top + i) * this.width + left + size - 1] = EMPTY;
  }

  /** Adds closed doors until the agent can reach every room. */
  connect(): void {
    const { columns, rows } = this.layout;
    for (let round = 0; this.countReachableRooms() < columns * rows; round++) {
      if (round > MAX_CONNECT_ROUNDS) throw new LevelRejected();
      const position = this.pickRoom();
      const side = this.int(0, 4);
      const room = this.getRoom(position);
      if (room.doorCells[side] === undefined || room.isOpenTo[side]) continue;
      if (room.isLocked || this.getNeighbor(position, side)!.isLocked) continue;
      this.addDoor(position, { side, color: this.pickColor(), isLocked: false });
    }
  }

  recolor(color: ColorName, things: readonly number[]): void {
    for (const number of things) this.things[number] = { ...this.things[number], color };
  }

  /**
   * Whether the agent can be next to every object, with all doors open and without moving anything.
   */
  isEverythingReachable(): boolean {
    const { width, cells } = this;
    const reached = new Set<number>();
    const pending = [this.agent.y * width + this.agent.x];
    for (let cell = pending.pop(); cell !== undefined; cell = pending.pop()) {
      if (reached.has(cell)) continue;
      reached.add(cell);
      if (cells[cell] !== EMPTY && this.things[cells[cell]]?.kind !== "door") continue;
      const [x, y] = [cell % width, Math.floor(cell / width)];
      for (const [dx, dy] of [0, 1, 2, 3].map(getOffset))
        if (x + dx >= 0 && x + dx < width && y + dy >= 0 && y + dy < this.height) pending.push(cell + dy * width + dx);
    }
    return this.places.every((cell) => cell === undefined || reached.has(cell));
  }

  /** @throws LevelRejected unless everything is reachable */
  requireReachable(): void {
    if (!this.isEverythingReachable()) throw new LevelRejected();
  }

  /** Lays the rooms and draws the places of their doors. */
  private layRooms(): Room[] {
    const { size, columns, rows } = this.layout;
    const rooms = Array.from({ length: columns * rows }, (_, i): Room => {
      const [column, row] = [i % columns, Math.floor(i / columns)];
      return {
        left: column * (size - 1),
        top: row * (size - 1),
        doorCells: [undefined, undefined, undefined, undefined],
        isOpenTo: [false, false, false, false],
        isLocked: false,
      };
    });
    rooms.forEach((room, i) => {
      const { left, top } = room;
      if ((i % columns) + 1 < columns) {
        const cell = this.int(top + 1, top + size - 1) * this.width + left + size - 1;
        room.doorCells[0] = rooms[i + 1].doorCells[2] = cell;
      }
      if (i + columns < rooms.length) {
        const cell = (top + size - 1) * this.width + this.int(left + 1, left + size - 1);
        room.doorCells[1] = rooms[i + columns].doorCells[3] = cell;
      }
    });
    return rooms;
  }

  /** Draws a free cell of a room; its walls are drawn too and refused. */
  private drawCell(position: RoomPosition, isApart: boolean): number {
    const { left, top } = this.getRoom(position);
    const { size } = this.layout;
    for (let retry = 0; retry <= MAX_RETRIES; retry++) {
      const x = this.int(left, left + size);
      const y = this.int(top, top + size);
      const distance = Math.abs(x - this.agent.x) + Math.abs(y - this.agent.y);
      const cell = y * this.width + x;
      if (this.cells[cell] === EMPTY && distance >= (isApart ? 2 : 1)) return cell;
    }
    throw new LevelRejected();
  }

  private put(cell: number, thing: WorldObject): number {
    this.places.push(cell);
    this.cells[cell] = this.things.push(thing) - 1;
    return this.cells[cell];
  }

  /** Draws a side that has a neighbor and no door. */
  private pickFreeSide(position: RoomPosition): number {
    for (;;) {
      const side = this.int(0, 4);
      if (this.hasNeighbor(position, side) && !this.getRoom(position).isOpenTo[side]) return side;
    }
  }

  private getRoom([column, row]: RoomPosition): Room {
    return this.rooms[row * this.layout.columns + column];
  }

  private getNeighbor([column, row]: RoomPosition, side: number): Room | undefined {
    const [dx, dy] = getOffset(side);
    return this.getRoom([column + dx, row + dy]);
  }

  private countReachableRooms(): number {
    const reached = new Set<Room>();
    const pending = [this.agentRoom];
    for (let position = pending.pop(); position !== undefined; position = pending.pop()) {
      const room = this.getRoom(position);
      if (reached.has(room)) continue;
      reached.add(room);
      const [column, row] = position;
      room.isOpenTo.forEach((isOpen, side) => {
        const [dx, dy] = getOffset(side);
        if (isOpen) pending.push([column + dx, row + dy]);
      });
    }
    return reached.size;
  }
}
