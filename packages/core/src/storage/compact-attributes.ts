import type { SelectableAttributes } from './stored-object.ts';

/** Number of distinct label sets that are cached for sharing; more than a cluster has workloads. */
const mostLabelSets = 8192;
/** Larger label sets are unusual and are not cached, so that they do not outlive their objects. */
const longestShared = 1024;

const labelSets = new Map<string, Readonly<Record<string, string>>>();
/** Shared lists of the paths of selectable fields, one per kind. */
const pathLists: (readonly string[])[] = [];

/**
 * The same attributes in less memory: the replicas of a workload share their labels, the objects of a kind the names of
 * their fields. Every object of a cached kind retains its attributes after the first selector examined it.
 */
export function compactAttributes(attributes: SelectableAttributes): SelectableAttributes {
  const { labels, fields } = attributes;
  return {
    labels: sharedLabels(labels),
    fields: new FieldValues(sharedPaths([...fields.keys()]), [...fields.values()]),
  };
}

function sharedLabels(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const text = JSON.stringify(labels);
  if (text.length > longestShared) return labels;
  let shared = labelSets.get(text);
  if (shared === undefined) {
    if (labelSets.size >= mostLabelSets) labelSets.clear();
    shared = labels;
    labelSets.set(text, shared);
  }
  return shared;
}

function sharedPaths(paths: readonly string[]): readonly string[] {
  const known = pathLists.find((list) => list.length === paths.length && list.every((path, i) => path === paths[i]));
  if (known !== undefined) return known;
  if (pathLists.length < 1024) pathLists.push(paths);
  return paths;
}

/** A map of few entries as two arrays, of which the first is shared. */
class FieldValues implements ReadonlyMap<string, string> {
  readonly #paths: readonly string[];
  readonly #values: readonly string[];

  constructor(paths: readonly string[], values: readonly string[]) {
    this.#paths = paths;
    this.#values = values;
  }

  get size(): number {
    return this.#paths.length;
  }

  get(path: string): string | undefined {
    return this.#values[this.#paths.indexOf(path)];
  }

  has(path: string): boolean {
    return this.#paths.includes(path);
  }

  forEach(callback: (value: string, path: string, map: ReadonlyMap<string, string>) => void): void {
    for (const [path, value] of this) callback(value, path, this);
  }

  keys(): MapIterator<string> {
    return new Map(this).keys();
  }

  values(): MapIterator<string> {
    return new Map(this).values();
  }

  entries(): MapIterator<[string, string]> {
    return this[Symbol.iterator]();
  }

  [Symbol.iterator](): MapIterator<[string, string]> {
    return new Map(this.#paths.map((path, i) => [path, this.#values[i] as string])).entries();
  }
}
