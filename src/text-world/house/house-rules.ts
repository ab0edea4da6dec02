import { KnowledgeBase } from "../logic/knowledge-base.js";

/**
 * Rules of the generated houses: rooms with doors, containers and doors with keys, supporters, food.
 * Written in the language of TextWorld's game files, without the parts for its compiler. For an action without effect
 * (look, examine), the rule removes and re-adds the player's location.
 */
const RULES = `
type P {}
type I {}
type r {
  predicates {
    south_of(r, r') = north_of(r', r);
    east_of(r, r') = west_of(r', r);
  }
  rules {
    go/north :: at(P, r) & $north_of(r', r) & $free(r, r') -> at(P, r');
    go/south :: at(P, r) & $south_of(r', r) & $free(r, r') -> at(P, r');
    go/east  :: at(P, r) & $east_of(r', r) & $free(r, r') -> at(P, r');
    go/west  :: at(P, r) & $west_of(r', r) & $free(r, r') -> at(P, r');
    look      :: at(P, r) -> at(P, r);
    inventory :: at(P, r) -> at(P, r);
  }
  reverse_rules {
    go/north :: go/south;
    go/east :: go/west;
    look :: look;
    inventory :: inventory;
  }
  inform7 {
    commands {
      go/north  :: "go north"  :: "";
      go/south  :: "go south"  :: "";
      go/east   :: "go east"   :: "";
      go/west   :: "go west"   :: "";
      look      :: "look"      :: "";
      inventory :: "inventory" :: "";
    }
  }
}

# a thing of any kind
type t {
  rules {
    examine/here :: at(P, r) & $at(t, r) -> at(P, r);
  }
  reverse_rules { examine/here :: examine/here; }
  inform7 { commands { examine/here :: "examine {t}" :: ""; } }
}

# a door
type d : t {
  rules {
    unlock/door :: $at(P, r) & $link(r, d, r') & $link(r', d, r) & $in(k, I) & $match(k, d) & locked(d) -> closed(d);
    lock/door   :: $at(P, r) & $link(r, d, r') & $link(r', d, r) & $in(k, I) & $match(k, d) & closed(d) -> locked(d);
    open/door   :: $at(P, r) & $link(r, d, r') & $link(r', d, r) & closed(d) -> open(d) & free(r, r') & free(r', r);
    close/door  :: $at(P, r) & $link(r, d, r') & $link(r', d, r) & open(d) & free(r, r') & free(r', r) -> closed(d);
    examine/door :: at(P, r) & $link(r, d, r') -> at(P, r);
  }
  reverse_rules {
    unlock/door :: lock/door;
    open/door :: close/door;
    examine/door :: examine/door;
  }
  inform7 {
    commands {
      unlock/door  :: "unlock {d} with {k}" :: "";
      lock/door    :: "lock {d} with {k}"   :: "";
      open/door    :: "open {d}"            :: "";
      close/door   :: "close {d}"           :: "";
      examine/door :: "examine {d}"         :: "";
    }
  }
}

# a container
type c : t {
  rules {
    unlock/container :: $at(P, r) & $at(c, r) & $in(k, I) & $match(k, c) & locked(c) -> closed(c);
    lock/container   :: $at(P, r) & $at(c, r) & $in(k, I) & $match(k, c) & closed(c) -> locked(c);
    open/container   :: $at(P, r) & $at(c, r) & closed(c) -> open(c);
    close/container  :: $at(P, r) & $at(c, r) & open(c) -> closed(c);
    take/container   :: $at(P, r) & $at(c, r) & $open(c) & in(o, c) -> in(o, I);
    insert           :: $at(P, r) & $at(c, r) & $open(c) & in(o, I) -> in(o, c);
    examine/inside   :: at(P, r) & $at(c, r) & $open(c) & $in(o, c) -> at(P, r);
  }
  reverse_rules {
    unlock/container :: lock/container;
    open/container :: close/container;
    take/container :: insert;
    examine/inside :: examine/inside;
  }
  inform7 {
    commands {
      unlock/container :: "unlock {c} with {k}" :: "";
      lock/container   :: "lock {c} with {k}"   :: "";
      open/container   :: "open {c}"            :: "";
      close/container  :: "close {c}"           :: "";
      take/container   :: "take {o} from {c}"   :: "";
      insert           :: "insert {o} into {c}" :: "";
      examine/inside   :: "examine {o}"         :: "";
    }
  }
}

# a supporter
type s : t {
  rules {
    take/supporter :: $at(P, r) & $at(s, r) & on(o, s) -> in(o, I);
    put            :: $at(P, r) & $at(s, r) & in(o, I) -> on(o, s);
    examine/on     :: at(P, r) & $at(s, r) & $on(o, s) -> at(P, r);
  }
  reverse_rules {
    take/supporter :: put;
    examine/on :: examine/on;
  }
  inform7 {
    commands {
      take/supporter :: "take {o} from {s}" :: "";
      put            :: "put {o} on {s}"    :: "";
      examine/on     :: "examine {o}"       :: "";
    }
  }
}

# something that can be carried
type o : t {
  rules {
    take/floor      :: $at(P, r) & at(o, r) -> in(o, I);
    drop            :: $at(P, r) & in(o, I) -> at(o, r);
    examine/carried :: at(P, r) & $in(o, I) -> at(P, r);
  }
  reverse_rules {
    take/floor :: drop;
    examine/carried :: examine/carried;
  }
  inform7 {
    commands {
      take/floor      :: "take {o}"    :: "";
      drop            :: "drop {o}"    :: "";
      examine/carried :: "examine {o}" :: "";
    }
  }
}
type k : o {}
type f : o {
  rules { eat :: in(f, I) -> eaten(f); }
  inform7 { commands { eat :: "eat {f}" :: ""; } }
}
`;

let knowledge: KnowledgeBase | undefined;

/** The rules of all generated houses. */
export function getHouseRules(): KnowledgeBase {
  knowledge ??= new KnowledgeBase(RULES, "the rules of the house");
  return knowledge;
}
