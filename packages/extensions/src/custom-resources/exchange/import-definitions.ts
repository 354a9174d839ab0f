import type { CustomResourceDefinition, CustomResourceDefinitionVersion, JsonSchemaProps } from '@keelson/kinds';
import { parseFieldPath, schemaAt } from '../schema/field-path.ts';

/** The source text of a TypeScript module, with notes about parts of the definitions that it cannot express. */
export interface ImportedDefinitions {
  readonly source: string;
  readonly notes: readonly string[];
}

const metaFields = ['apiVersion', 'kind', 'metadata'];

/** Generates a TypeScript module that declares the kinds of the definitions with `defineKind` and inferred types. */
export function importDefinitions(definitions: readonly CustomResourceDefinition[]): ImportedDefinitions {
  const notes: string[] = [];
  const kinds = definitions.flatMap((definition) => kindsOf(definition, notes));
  const body = kinds.join('\n');
  const used = ['optional', 'required'].filter((name) => body.includes(`${name}(`));
  const names = ['defineKind', 'type ObjectOf', ...used, 's'].join(', ');
  return { source: `import { ${names} } from '@keelson/core';\n\n${body}`, notes };
}

const text = (value: unknown) => JSON.stringify(value);
const key = (name: string) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : text(name));

function kindsOf({ spec, metadata }: CustomResourceDefinition, notes: string[]): string[] {
  const stored = spec.versions.find(({ storage }) => storage);
  if (spec.conversion?.strategy === 'Webhook')
    notes.push(`${metadata?.name}: the conversion webhook; write toStorage and fromStorage of each version`);
  const several = spec.versions.length > 1;
  const nameOf = ({ name }: CustomResourceDefinitionVersion) =>
    several ? `${spec.names.kind}${name.charAt(0).toUpperCase()}${name.slice(1)}` : spec.names.kind;
  const ordered = [...spec.versions].sort((a, b) => Number(b.storage) - Number(a.storage));
  return ordered
    .filter(({ served, storage }) => served || storage)
    .map((version) =>
      kindOf(spec, version, nameOf(version), version === stored || !stored ? undefined : nameOf(stored), notes),
    );
}

function kindOf(
  { group, names, scope }: CustomResourceDefinition['spec'],
  version: CustomResourceDefinitionVersion,
  name: string,
  storedAs: string | undefined,
  notes: string[],
): string {
  const schema = version.schema?.openAPIV3Schema ?? {};
  const where = `${names.kind} of ${group}/${version.name}`;
  const note = (what: string) => notes.push(`${where}: ${what}`);
  const lines = [
    `export const ${name} = defineKind({`,
    `  group: ${text(group)},`,
    `  version: ${text(version.name)},`,
    `  kind: ${text(names.kind)},`,
    `  scope: ${text(scope)},`,
    `  names: ${text({ plural: names.plural, singular: names.singular, shortNames: names.shortNames ?? [], categories: names.categories ?? [] })},`,
    `  schema: ${objectText(schema, '', note, true)},`,
  ];
  if (version.subresources?.status) lines.push("  subresources: [{ type: 'status', name: 'status' }],");
  if (version.subresources?.scale) note('the subresource scale; see autoscalingScaleOf of @keelson/kinds');
  if ((version.additionalPrinterColumns ?? []).length > 0) note('the printer columns; see columns of defineKind');
  const fields = (version.selectableFields ?? []).flatMap(({ jsonPath }) => selectableText(jsonPath, schema));
  if (fields.length > 0) lines.push(`  selectableFields: [${fields.join(', ')}],`);
  if (storedAs) {
    const change = (to: string) => `(object) => ({ ...object, apiVersion: ${text(to)} }) as never`;
    lines.push(
      '  storage: {',
      `    kind: ${storedAs},`,
      `    toStorage: (object) => ({ ...object, apiVersion: ${storedAs}.apiVersion }),`,
      `    fromStorage: ${change(`${group}/${version.name}`)},`,
      '    isRelabel: () => true,',
      '  },',
    );
  }
  lines.push('});', `export type ${name} = ObjectOf<typeof ${name}>;`, '');
  return lines.join('\n');
}

function selectableText(jsonPath: string, schema: JsonSchemaProps): string[] {
  const names = parseFieldPath(jsonPath);
  if (typeof names === 'string' || typeof schemaAt(jsonPath, schema) === 'string') return [];
  const access = names.map((name, i) => (i === 0 ? `.${name}` : `?.${name}`)).join('');
  return [`[${text(names.join('.'))}, (object) => String(object${access} ?? '')]`];
}

/** Schema fields that the schema builder `s` does not support. */
const lost = [
  'allOf',
  'anyOf',
  'oneOf',
  'not',
  'multipleOf',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'minProperties',
  'maxProperties',
  'nullable',
  'x-kubernetes-validations',
  'x-kubernetes-embedded-resource',
] as const;

type Note = (what: string) => void;

function objectText(schema: JsonSchemaProps, path: string, note: Note, root = false): string {
  const fields = Object.entries(schema.properties ?? {})
    .filter(([name]) => !root || !metaFields.includes(name))
    .map(
      ([name, child]) =>
        `${key(name)}: ${fieldText(schema, name, child, path === '' ? name : `${path}.${name}`, note)}`,
    );
  const description = schema.description ? `, ${text(schema.description)}` : '';
  return fields.length === 0 ? `s.object({}${description})` : `s.object({ ${fields.join(', ')} }${description})`;
}

function fieldText(parent: JsonSchemaProps, name: string, schema: JsonSchemaProps, path: string, note: Note): string {
  const needed = parent.required?.includes(name) && schema.default === undefined;
  const options = schema.default === undefined ? '' : `, { default: ${text(schema.default)} }`;
  const description = schema.description || options ? `, ${text(schema.description ?? '')}` : '';
  return `${needed ? 'required' : 'optional'}(${schemaText(schema, path, note)}${description}${options})`;
}

function traits(values: Readonly<Record<string, unknown>>): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  return given.length === 0 ? '' : `{ ${given.map(([name, value]) => `${name}: ${text(value)}`).join(', ')} }`;
}

function schemaText(schema: JsonSchemaProps, path: string, note: Note): string {
  const { type, format, properties, additionalProperties, items, enum: values, pattern, minimum, maximum } = schema;
  for (const word of lost) if (schema[word] !== undefined) note(`${word} of ${path}`);
  if (schema['x-kubernetes-int-or-string']) return 's.intOrString()';
  if (properties && schema['x-kubernetes-preserve-unknown-fields']) note(`unknown fields of ${path} are not preserved`);
  switch (type) {
    case 'string':
      if (format === 'date-time') return 's.time()';
      if (format === 'byte') return 's.bytes()';
      if (format) note(`format ${format} of ${path}`);
      return `s.string(${traits({ enum: values, pattern, minLength: schema.minLength, maxLength: schema.maxLength })})`;
    case 'integer':
      return `s.${format === 'int32' ? 'int32' : 'int64'}(${traits({ minimum, maximum })})`;
    case 'number':
      return `s.double(${traits({ minimum, maximum })})`;
    case 'boolean':
      return 's.bool()';
    case 'array': {
      const {
        minItems,
        maxItems,
        'x-kubernetes-list-type': listType,
        'x-kubernetes-list-map-keys': listMapKeys,
      } = schema;
      const item = items && !Array.isArray(items) ? schemaText(items, `${path}[]`, note) : 's.any()';
      const more = traits({ minItems, maxItems, listType, listMapKeys });
      return `s.list(${item}${more === '' ? '' : `, ${more}`})`;
    }
    case 'object': {
      const mapType = schema['x-kubernetes-map-type'] === 'atomic' ? ', { mapType: "atomic" }' : '';
      if (typeof additionalProperties === 'object')
        return `s.map(${schemaText(additionalProperties, `${path}{}`, note)}${mapType})`;
      if (properties) return objectText(schema, path, note);
      return 's.raw()';
    }
    default:
      return 's.any()';
  }
}
