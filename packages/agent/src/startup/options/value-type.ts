/** A text is not a value of the type. The message states the reason without the name of the option. */
export class ValueError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ValueError';
  }
}

/** The notation of values of one type on the command line. */
export interface ValueType<T> {
  /** The type in the help text: `bool`, `stringSlice`. */
  readonly name: string;
  /** The type in a configuration file; a list contains texts, a map contains texts, numbers or booleans by name. */
  readonly shape: 'bool' | 'number' | 'text' | 'list' | 'map';
  /** The value of an option that is given without a value; when absent, the option requires a value. */
  readonly bare?: string;
  /**
   * Parses one occurrence. `earlier` is the value of the previous occurrences; it is undefined for the first one, which
   * replaces the default.
   *
   * @throws ValueError
   */
  parse(text: string, earlier: T | undefined): T;
  /** The text of a value, as `parse` accepts it and the help text shows it; empty for an empty value. */
  format(value: T): string;
}
