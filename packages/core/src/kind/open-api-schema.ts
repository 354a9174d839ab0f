import type { GroupVersionKind } from '../meta/types.ts';
import { componentName } from './component-name.ts';
import { deleteOptionsSchema } from './delete-options-schema.ts';
import type { JsonSchema } from './json-schema.ts';
import type { KindDefinition } from './kind-definition.ts';
import { listMetaSchema } from './object-meta-schema.ts';
import { always, optional, type Schema, s } from './schema.ts';
import { SchemaComponents } from './schema-components.ts';
import { type MessageNode, messageNode } from './schema-walk.ts';
import { statusSchema } from './status-schema.ts';
import { typeMetaFields } from './type-meta-fields.ts';

/** Component of a body whose shape depends on the type of patch. */
export const patchComponent = 'io.k8s.apimachinery.pkg.apis.meta.v1.Patch';

function messageOf(schema: Schema<unknown>, what: string): MessageNode {
  const message = messageNode(schema);
  if (!message) throw new Error(`the schema of ${what} must be a message`);
  return message;
}

function groupVersionKind({ group, version, kind }: GroupVersionKind): {
  group: string;
  version: string;
  kind: string;
} {
  return { group, version, kind };
}

/** Schema of the list of a kind. */
function listSchemaOf(kind: KindDefinition): Schema<unknown> {
  const item = messageOf(kind.schema, kind.kind);
  return s.message(`${item.name}List`, `List of objects of kind ${kind.kind}.`, {
    ...typeMetaFields,
    metadata: optional(1, listMetaSchema, 'What state the list shows and how to go on reading it.'),
    items: always(2, s.list(kind.schema), 'The objects.'),
  });
}

/** Component name of a kind's objects. */
export function kindComponentName(kind: KindDefinition): string {
  return componentName(messageOf(kind.schema, kind.kind).name);
}

/** Component name of a kind's lists. */
export function listComponentName(kind: KindDefinition): string {
  return `${kindComponentName(kind)}List`;
}

/**
 * The component schemas of an OpenAPI v3 document that shows these kinds: the kinds, their lists, the bodies of
 * their subresources, everything those refer to, and the bodies that all kinds share (Status, DeleteOptions, Patch).
 * Top-level components carry `x-kubernetes-group-version-kind`; lists and maps carry their patch extensions.
 */
export function openApiSchemas(kinds: readonly KindDefinition[]): Record<string, JsonSchema> {
  const components = new SchemaComponents('#/components/schemas/');
  const topLevel = new Map<string, GroupVersionKind[]>();
  const show = (schema: Schema<unknown>, as: GroupVersionKind): void => {
    const name = components.message(messageOf(schema, as.kind));
    const shown = topLevel.get(name) ?? [];
    topLevel.set(name, [...shown, as]);
  };
  for (const kind of kinds) {
    show(kind.schema, kind);
    if (kind.verbs.includes('list')) show(listSchemaOf(kind), { ...kind, kind: kind.listKind });
  }
  for (const { subresources } of kinds) {
    for (const subresource of subresources)
      if ('bodyKind' in subresource) show(subresource.schema, subresource.bodyKind);
  }
  show(statusSchema, { group: '', version: 'v1', kind: 'Status' });
  for (const version of versionsOf(kinds)) show(deleteOptionsSchema, { ...version, kind: 'DeleteOptions' });
  for (const [name, as] of topLevel) {
    const words = new Map(as.map((gvk) => [`${gvk.group}/${gvk.version}/${gvk.kind}`, groupVersionKind(gvk)]));
    components.add(name, { 'x-kubernetes-group-version-kind': [...words.values()] });
  }
  components.add(patchComponent, {
    type: 'object',
    description: 'Changes to an object, in the form its Content-Type names.',
  });
  return components.all();
}

function versionsOf(kinds: readonly KindDefinition[]): { group: string; version: string }[] {
  const versions = new Map(kinds.map(({ apiVersion, group, version }) => [apiVersion, { group, version }]));
  return [...versions.values()];
}

/** One JSON Schema (draft 2020-12) of a kind's objects, complete in itself, for editors and validators. */
export function jsonSchemaOf(kind: KindDefinition): JsonSchema {
  const components = new SchemaComponents('#/$defs/');
  const name = components.message(messageOf(kind.schema, kind.kind));
  const { [name]: own, ...$defs } = components.all();
  const recursive = JSON.stringify([own, $defs]).includes(`"#/$defs/${name}"`);
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: kind.kind,
    ...own,
    $defs: recursive && own ? { ...$defs, [name]: own } : $defs,
  };
}
