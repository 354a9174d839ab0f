import type { JsonSchemaProps } from '@keelson/kinds';

/** The names in a path such as `.spec.labels['a.b']`, or an error message for a malformed path. */
export function parseFieldPath(path: string): readonly string[] | string {
  const names: string[] = [];
  let rest = path;
  while (rest !== '') {
    const bracket = /^\['((?:[^'\\]|\\.)*)'\]/s.exec(rest);
    const field = bracket ? undefined : /^\.?([^.[\]']+)/.exec(rest);
    const dotted = rest.startsWith('.') || names.length === 0;
    if (bracket) names.push((bracket[1] ?? '').replace(/\\(.)/gs, '$1'));
    else if (field && dotted) names.push(field[1] ?? '');
    else if (rest.startsWith('[')) return `expected single quoted string but got ${rest.slice(1).split(']')[0]}`;
    else return 'unexpected end of JSON path';
    rest = rest.slice((bracket ?? field)?.[0].length);
  }
  return names;
}

/** The schema of the field at a path, or an error message. Source: `ValidFieldPath` in `apiserver/schema/cel`. */
export function schemaAt(path: string, schema: JsonSchemaProps): JsonSchemaProps | string {
  if (!/^[.[]/.test(path)) return `expected [ or . but got: ${path.split(/[.[\]]/, 1)[0]}`;
  const names = parseFieldPath(path);
  if (typeof names === 'string') return names;
  let at: JsonSchemaProps = schema;
  for (const name of names) {
    const { properties, additionalProperties } = at;
    const next = properties ? (Object.hasOwn(properties, name) ? properties[name] : undefined) : additionalProperties;
    if (typeof next !== 'object') return 'does not refer to a valid field';
    at = next;
  }
  return at;
}

/** The reason why a path does not lead to a field of the schema; undefined for a valid path. */
export function fieldPathProblem(path: string, schema: JsonSchemaProps): string | undefined {
  const found = schemaAt(path, schema);
  return typeof found === 'string' ? found : undefined;
}
