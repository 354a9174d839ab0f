/** Text that is no value of a type; the message says why, without the option's name. */
export class ValueError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ValueError';
  }
}

/** How values of one kind are written on the command line. */
export interface ValueType<T> {
  /** The word of the specification: `bool`, `stringSlice`. */
  readonly name: string;
  /** What a configuration file has in its place: a list has texts, a map texts, numbers or booleans by name. */
  readonly shape: 'bool' | 'number' | 'text' | 'list' | 'map';
  /** What the option means when it stands without a value; absent: it needs one. */
  readonly bare?: string;
  /**
   * Reads one occurrence. `earlier` is what occurrences before it gave; the first one starts from nothing, so it
   * replaces the default.
   *
   * @throws ValueError
   */
  parse(text: string, earlier: T | undefined): T;
  /** The text that `parse` would read, as help shows it; '' for nothing. */
  format(value: T): string;
}
