import type { ValueType } from './value-type.ts';

export interface OptionTraits {
  /** The default in the help text, where the value itself does not describe it. */
  readonly shownDefault?: string;
  /** Present for a deprecated option: the text of the warning when it is used. */
  readonly deprecated?: string;
}

/** One option; the parser, the help text and the reference page are derived from it. */
export interface Option<N extends string, T> extends OptionTraits {
  /** The name without the leading dashes. */
  readonly name: N;
  readonly type: ValueType<T>;
  readonly default: T;
  readonly help: string;
}

/** An option of any name and type. */
// biome-ignore lint/suspicious/noExplicitAny: a table contains options of every type
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
