import type { ValueType } from './value-type.ts';

export interface OptionTraits {
  /** How help writes the default, where the value itself says too little. */
  readonly shownDefault?: string;
  /** Present: use works, but is warned of with this sentence. */
  readonly deprecated?: string;
}

/** One option: the source of the parser, of help, and of the reference page. */
export interface Option<N extends string, T> extends OptionTraits {
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
  traits: OptionTraits = {},
): Option<N, T> {
  return { name, type, default: value, help, ...traits };
}

/** The values of some options, by name. */
export type ValuesOf<O extends AnyOption> = {
  readonly [R in O as R['name']]: R extends Option<string, infer T> ? T : never;
};
