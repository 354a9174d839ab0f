/** A line that is no comma-separated record; the message says why. */
export class CsvError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CsvError';
  }
}

/**
 * The fields of one line (RFC 4180): separated by commas, in quotes where they hold commas, a quote in quotes doubled.
 *
 * @throws CsvError
 */
export function parseCsvLine(line: string): string[] {
  const fields: string[] = [];
  const field = /(?:"((?:[^"]|"")*)"|([^",]*))(,|$)/y;
  for (let more = true; more; ) {
    const found = field.exec(line);
    if (found === null) throw new CsvError('a quote begins and ends a whole column, and is doubled inside');
    const [, quoted, plain = '', end] = found;
    fields.push(quoted?.replaceAll('""', '"') ?? plain);
    more = end === ',';
  }
  return fields;
}
