import type { ValueType } from './value-type.ts';

/** What becomes of an option that no part of the agent obeys yet: values other than these are refused. */
export interface NotYet<T> {
  /** Besides the default, values that ask for exactly what happens anyway. */
  readonly harmless: readonly T[];
}

export interface OptionTraits<T> {
  /** How help writes the default, where the value itself says too little. */
  readonly shownDefault?: string;
  /** Present: use works, but is warned of with this sentence. */
  readonly deprecated?: string;
  readonly notYet?: NotYet<T>;
}

/** One option: the source of the parser, of help, and of the reference page. */
export interface Option<N extends string, T> extends OptionTraits<T> {
  /** Without the dashes. */
  readonly name: N;
  readonly type: ValueType<T>;
  readonly default: T;
  readonly help: string;
}

/** An option of any name and type. */
// biome-ignore lint/suspicious/noExplicitAny: a table holds options of every type
export type AnyOption = Option<string, any>;

export function option<const N extends string, T>(
  name: N,
  type: ValueType<T>,
  value: T,
  help: string,
  traits: OptionTraits<T> = {},
): Option<N, T> {
  return { name, type, default: value, help, ...traits };
}

/** Nothing obeys the option yet; its default is what happens, and so are the values named here. */
export function notYet<T>(...harmless: readonly T[]): { readonly notYet: NotYet<T> } {
  return { notYet: { harmless } };
}

/** The values of some options, by name. */
export type ValuesOf<O extends AnyOption> = { readonly [R in O as R['name']]: R extends Option<string, infer T> ? T : never };
