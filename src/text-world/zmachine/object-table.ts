import { readWord } from "./story.js";
import { StoryError, type InstructionBudget } from "./instruction-budget.js";

const ENTRY_LENGTH = 14;
/** Offsets in an entry. */
export const PARENT = 6;
export const SIBLING = 8;
export const CHILD = 10;
const MAX_ATTRIBUTES = 48;
const MAX_PROPERTIES = 63;

/**
 * A story's object tree, with attributes and properties (Standard, section 12, version 4 and
 * later).
 */
export class ObjectTable {
  private readonly defaults: number;
  /** Address of entry 0; objects are numbered from 1. */
  private readonly entries: number;

  constructor(
    private readonly memory: Uint8Array,
    private readonly write: (address: number, value: number) => void,
    private readonly budget: InstructionBudget,
  ) {
    this.defaults = readWord(this.memory, 0x0a);
    this.entries = this.defaults + 2 * MAX_PROPERTIES - ENTRY_LENGTH;
  }

  /** Returns the parent, sibling or child of an object; 0 for none. */
  link(object: number, link: number): number {
    return object === 0 ? 0 : readWord(this.memory, this.entry(object) + link);
  }

  hasAttribute(object: number, attribute: number): boolean {
    if (object === 0 || attribute >= MAX_ATTRIBUTES) return false;
    return (this.memory[this.entry(object) + (attribute >> 3)] & (0x80 >> (attribute & 7))) !== 0;
  }

  setAttribute(object: number, attribute: number, on: boolean): void {
    if (object === 0 || attribute >= MAX_ATTRIBUTES) return;
    const address = this.entry(object) + (attribute >> 3);
    const bit = 0x80 >> (attribute & 7);
    const byte = this.memory[address];
    this.write(address, on ? byte | bit : byte & ~bit);
  }

  /** Removes the object from its parent. */
  remove(object: number): void {
    const parent = this.link(object, PARENT);
    if (parent === 0) return;
    const next = this.link(object, SIBLING);
    if (this.link(parent, CHILD) === object) this.setLink(parent, CHILD, next);
    else {
      let previous = this.link(parent, CHILD);
      while (this.link(previous, SIBLING) !== object) {
        if (previous === 0) throw new StoryError(`object ${object} is not among its siblings`);
        this.budget.spend(1);
        previous = this.link(previous, SIBLING);
      }
      this.setLink(previous, SIBLING, next);
    }
    this.setLink(object, PARENT, 0);
    this.setLink(object, SIBLING, 0);
  }

  /** Makes the object the first child of another. */
  insert(object: number, destination: number): void {
    if (object === 0 || destination === 0) return;
    this.remove(object);
    this.setLink(object, PARENT, destination);
    this.setLink(object, SIBLING, this.link(destination, CHILD));
    this.setLink(destination, CHILD, object);
  }

  /** Returns the address of the object's short name. */
  nameAddress(object: number): number {
    return readWord(this.memory, this.entry(object) + 12) + 1;
  }

  /** Returns the value of a property, or its default. */
  property(object: number, property: number): number {
    const address = this.propertyAddress(object, property);
    if (address === 0) return readWord(this.memory, this.defaults + 2 * (property - 1));
    return this.propertyLength(address) === 1 ? this.memory[address] : readWord(this.memory, address);
  }

  setProperty(object: number, property: number, value: number): void {
    const address = this.propertyAddress(object, property);
    if (address === 0) throw new StoryError(`object ${object} has no property ${property}`);
    if (this.propertyLength(address) === 1) this.write(address, value & 0xff);
    else this.writeWord(address, value);
  }

  /** Returns the address of a property's data, or 0. */
  propertyAddress(object: number, property: number): number {
    if (object === 0) return 0;
    let at = this.firstProperty(object);
    for (let passed = 0; passed < MAX_PROPERTIES; passed++) {
      const size = this.memory[at] ?? 0;
      const data = at + (size & 0x80 ? 2 : 1);
      // Properties are in descending order.
      if ((size & 63) <= property) return (size & 63) === property && property !== 0 ? data : 0;
      at = data + this.propertyLength(data);
    }
    throw new StoryError(`object ${object} has more than ${MAX_PROPERTIES} properties`);
  }

  /** Returns the number of the next property, of the first for 0. */
  nextProperty(object: number, property: number): number {
    if (object === 0) return 0;
    if (property === 0) return this.memory[this.firstProperty(object)] & 63;
    const data = this.propertyAddress(object, property);
    if (data === 0) throw new StoryError(`object ${object} has no property ${property}`);
    return this.memory[data + this.propertyLength(data)] & 63;
  }

  propertyLength(address: number): number {
    if (address === 0) return 0;
    const size = this.memory[address - 1];
    if (size & 0x80) return size & 63 || 64;
    return size & 0x40 ? 2 : 1;
  }

  private firstProperty(object: number): number {
    const table = readWord(this.memory, this.entry(object) + 12);
    return table + 1 + 2 * this.memory[table];
  }

  private entry(object: number): number {
    return this.entries + ENTRY_LENGTH * object;
  }

  private setLink(object: number, link: number, value: number): void {
    this.writeWord(this.entry(object) + link, value);
  }

  private writeWord(address: number, value: number): void {
    this.write(address, value >> 8);
    this.write(address + 1, value & 0xff);
  }
}
