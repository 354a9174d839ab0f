import { KubeconfigError } from './kubeconfig-error.ts';

/** Data given by the path of a file or by its base64-encoded content. */
export interface FileOrData {
  readonly path?: string;
  readonly data?: string;
}

/** A mapping of the file. */
export type Fields = Readonly<Record<string, unknown>>;

/** Reads the content of a file; errors contain the position. */
export class KubeconfigReader {
  readonly #source: string;
  readonly #resolvePath: (path: string) => string;

  constructor(source: string, resolvePath: (path: string) => string) {
    this.#source = source;
    this.#resolvePath = resolvePath;
  }

  fail(where: string, expected: string): never {
    throw new KubeconfigError(`${this.#source}: ${where}: expected ${expected}`);
  }

  fields(value: unknown, where: string): Fields {
    if (value === undefined || value === null) return {};
    return typeof value === 'object' && !Array.isArray(value) ? (value as Fields) : this.fail(where, 'a map');
  }

  text(fields: Fields, name: string, where: string): string | undefined {
    const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (value === undefined || value === null || value === '') return undefined;
    return typeof value === 'string' ? value : this.fail(`${where}.${name}`, 'a string');
  }

  flag(fields: Fields, name: string, where: string): boolean {
    const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (value === undefined || value === null) return false;
    return typeof value === 'boolean' ? value : this.fail(`${where}.${name}`, 'true or false');
  }

  texts(value: unknown, where: string): string[] {
    if (value === undefined || value === null) return [];
    if (!Array.isArray(value) || !value.every((item) => typeof item === 'string'))
      return this.fail(where, 'a list of strings');
    return value;
  }

  file(fields: Fields, name: string, where: string): FileOrData {
    const path = this.text(fields, name, where);
    const data = this.text(fields, `${name}-data`, where);
    return {
      ...(path === undefined ? {} : { path: this.#resolvePath(path) }),
      ...(data === undefined ? {} : { data }),
    };
  }

  path(fields: Fields, name: string, where: string): string | undefined {
    const path = this.text(fields, name, where);
    return path === undefined ? undefined : this.#resolvePath(path);
  }

  /** Reads a list of `{ name, [key]: ... }`. The first of several entries with the same name is used. */
  named<T>(document: Fields, list: string, key: string, read: (fields: Fields, where: string) => T): Map<string, T> {
    const entries = new Map<string, T>();
    const items = document[list] ?? [];
    if (!Array.isArray(items)) this.fail(list, 'a list');
    for (const [at, item] of (items as unknown[]).entries()) {
      const where = `${list}[${at}]`;
      const fields = this.fields(item, where);
      const name = this.text(fields, 'name', where) ?? this.fail(`${where}.name`, 'a string');
      if (!entries.has(name)) entries.set(name, read(this.fields(fields[key], `${where}.${key}`), `${where}.${key}`));
    }
    return entries;
  }
}
