import { KnowledgeBase } from "../logic/knowledge-base.js";

/**
 * Rules of the generated houses: each type with its parent, and each rule with its command, the
 * rule that reverses it, and its logic in the language of TextWorld's game files. An action without
 * effect (look, examine) removes and re-adds the player's location. The types: player, inventory,
 * room, thing, door, container, supporter, portable object, key, food.
 */
const RULES = `
P

I

r
go/north | go north | go/south | at(P, r) & $north_of(r', r) & $free(r, r') -> at(P, r')
go/south | go south | go/north | at(P, r) & $north_of(r, r') & $free(r, r') -> at(P, r')
go/east | go east | go/west | at(P, r) & $west_of(r, r') & $free(r, r') -> at(P, r')
go/west | go west | go/east | at(P, r) & $west_of(r', r) & $free(r, r') -> at(P, r')
look | look | look | at(P, r) -> at(P, r)
inventory | inventory | inventory | at(P, r) -> at(P, r)

t
examine/here | examine {t} | examine/here | at(P, r) & $at(t, r) -> at(P, r)

d : t
unlock/door | unlock {d} with {k} | lock/door | $at(P, r) & DOOR & $in(k, I) & $match(k, d) & locked(d) -> closed(d)
lock/door | lock {d} with {k} | unlock/door | $at(P, r) & DOOR & $in(k, I) & $match(k, d) & closed(d) -> locked(d)
open/door | open {d} | close/door | $at(P, r) & DOOR & closed(d) -> open(d) & free(r, r') & free(r', r)
close/door | close {d} | open/door | $at(P, r) & DOOR & open(d) & free(r, r') & free(r', r) -> closed(d)
examine/door | examine {d} | examine/door | at(P, r) & $link(r, d, r') -> at(P, r)

c : t
unlock/container | unlock {c} with {k} | lock/container | $at(P, r) & $at(c, r) & $in(k, I) & $match(k, c) & locked(c) -> closed(c)
lock/container | lock {c} with {k} | unlock/container | $at(P, r) & $at(c, r) & $in(k, I) & $match(k, c) & closed(c) -> locked(c)
open/container | open {c} | close/container | $at(P, r) & $at(c, r) & closed(c) -> open(c)
close/container | close {c} | open/container | $at(P, r) & $at(c, r) & open(c) -> closed(c)
take/container | take {o} from {c} | insert | $at(P, r) & $at(c, r) & $open(c) & in(o, c) -> in(o, I)
insert | insert {o} into {c} | take/container | $at(P, r) & $at(c, r) & $open(c) & in(o, I) -> in(o, c)
examine/inside | examine {o} | examine/inside | at(P, r) & $at(c, r) & $open(c) & $in(o, c) -> at(P, r)

s : t
take/supporter | take {o} from {s} | put | $at(P, r) & $at(s, r) & on(o, s) -> in(o, I)
put | put {o} on {s} | take/supporter | $at(P, r) & $at(s, r) & in(o, I) -> on(o, s)
examine/on | examine {o} | examine/on | at(P, r) & $at(s, r) & $on(o, s) -> at(P, r)

o : t
take/floor | take {o} | drop | $at(P, r) & at(o, r) -> in(o, I)
drop | drop {o} | take/floor | $at(P, r) & in(o, I) -> at(o, r)
examine/carried | examine {o} | examine/carried | at(P, r) & $in(o, I) -> at(P, r)

k : o

f : o
eat | eat {f} | | in(f, I) -> eaten(f)
`.replaceAll("DOOR", "$$link(r, d, r') & $$link(r', d, r)");

/** Writes a type and its rules as TextWorld does. */
function formatType(block: string): string {
  const [type, ...lines] = block.trim().split("\n");
  const rules = lines.map((line) => line.split("|").map((column) => column.trim()));
  const logic = rules.map(([rule, , , conditions]) => `${rule} :: ${conditions};`);
  const reverses = rules.map(([rule, , reverse]) => (reverse === "" ? "" : `${rule} :: ${reverse};`));
  const commands = rules.map(([rule, command]) => `${rule} :: "${command}" :: "";`);
  const parts = [logic, reverses, commands].map((part) => part.join("\n"));
  return `type ${type} { rules { ${parts[0]} } reverse_rules { ${parts[1]} } inform7 { commands { ${parts[2]} } } }`;
}

let knowledge: KnowledgeBase | undefined;

/** Returns the rules of all generated houses. */
export function getHouseRules(): KnowledgeBase {
  knowledge ??= new KnowledgeBase(RULES.split("\n\n").map(formatType).join("\n"), "the rules of the house");
  return knowledge;
}
