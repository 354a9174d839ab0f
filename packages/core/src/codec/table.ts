import type { Column, ColumnContext, KindDefinition, RowCondition } from '../kind/kind-definition.ts';
import type { KubeObject } from '../meta/types.ts';
import type { Clock } from '../runtime/clock.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import { type JsonShape, partialMetadataJson, partialOf } from './json-form.ts';
import { servedBytes, servedValue } from './object-codec.ts';
import type { IncludeObject } from './wire-form.ts';

/** Description of a column on the wire; all fields are always there. */
export interface TableColumnDefinition {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly description: string;
  readonly priority: number;
}

/** One row on the wire. */
export interface TableRow {
  readonly cells: readonly (string | number | boolean | null)[];
  readonly conditions?: readonly RowCondition[];
  readonly object?: unknown;
}

/** Columns of kinds that declare none. The time is text in RFC 3339, unlike the humanised times of declared columns. */
const defaultColumns: readonly Column<KubeObject>[] = [
  {
    name: 'Name',
    type: 'string',
    format: 'name',
    description: 'Name of the object, unique among those of its kind in its namespace.',
    priority: 0,
    value: (object) => object.metadata?.name ?? '',
  },
  {
    name: 'Created At',
    type: 'date',
    description: 'Time at which the server created the object.',
    priority: 0,
    value: (object) => object.metadata?.creationTimestamp ?? null,
  },
];

/**
 * Objects as rows of a Table: see docs/reference/api-rules.md#tables-and-metadata-only. Rows are rendered for each
 * response, because ages change. `metaApiVersion` is the version of the metadata API.
 */
export function tableShape(
  kind: KindDefinition,
  metaApiVersion: string,
  include: IncludeObject,
  clock: Clock,
): JsonShape {
  const columns: readonly Column<KubeObject>[] = kind.columns.length > 0 ? kind.columns : defaultColumns;
  const metadata = partialMetadataJson(kind, metaApiVersion);
  const envelope = { kind: 'Table', apiVersion: metaApiVersion, field: 'rows' } as const;
  const described = { ...envelope, extra: { columnDefinitions: columns.map(definitionOf) } };

  const objectText = (stored: StoredObject): string => {
    if (include === 'None') return '';
    return (include === 'Object' ? servedBytes(kind, stored) : metadata.encode(stored)).toString('utf8');
  };
  const rowText = (object: KubeObject, text: string): string => {
    const row = rowOf(kind, columns, object, { now: new Date(clock.now()) });
    return text === '' ? JSON.stringify(row) : `${JSON.stringify(row).slice(0, -1)},"object":${text}}`;
  };

  return {
    representation: undefined,
    text: (stored) => rowText(servedValue(kind, stored), objectText(stored)),
    bookmark: (stored) => {
      const object = stored.value();
      return Buffer.from(
        rowText(object, include === 'None' ? '' : JSON.stringify(rowObject(object, include, metaApiVersion))),
      );
    },
    document: (object) => {
      // The body of a subresource, such as Scale, has another kind.
      const own = object.kind === kind.kind && object.apiVersion === kind.apiVersion;
      const shown = own ? columns : (bodyColumns(kind, object) ?? defaultColumns);
      const row = rowOf(own ? kind : undefined, shown, object, { now: new Date(clock.now()) });
      return {
        kind: 'Table',
        apiVersion: metaApiVersion,
        metadata: { resourceVersion: object.metadata?.resourceVersion ?? '' },
        columnDefinitions: shown.map(definitionOf),
        rows: [include === 'None' ? row : { ...row, object: rowObject(object, include, metaApiVersion) }],
      };
    },
    list: described,
    single: { first: described, next: { ...envelope, extra: { columnDefinitions: [] } } },
  };
}

function bodyColumns({ subresources }: KindDefinition, body: KubeObject): readonly Column<KubeObject>[] | undefined {
  for (const subresource of subresources) {
    if (subresource.type === 'projection' && subresource.bodyKind.kind === body.kind) return subresource.columns;
  }
  return undefined;
}

function rowObject(object: KubeObject, include: IncludeObject, metaApiVersion: string): unknown {
  return include === 'Object' ? object : partialOf(object, metaApiVersion);
}

function rowOf(
  kind: KindDefinition | undefined,
  columns: readonly Column<KubeObject>[],
  object: KubeObject,
  context: ColumnContext,
): TableRow {
  const cells = columns.map((column) => cellOf(column, object, context));
  const conditions = kind?.rowConditions === undefined ? [] : conditionsOf(kind.rowConditions, object);
  return conditions.length === 0 ? { cells } : { cells, conditions };
}

/** A column that fails for an unusual object must not hide the whole list; its cell stays empty. */
function cellOf(
  column: Column<KubeObject>,
  object: KubeObject,
  context: ColumnContext,
): string | number | boolean | null {
  try {
    return column.value(object, context) ?? null;
  } catch {
    return null;
  }
}

function conditionsOf(
  rowConditions: (object: KubeObject) => RowCondition[],
  object: KubeObject,
): readonly RowCondition[] {
  try {
    return rowConditions(object);
  } catch {
    return [];
  }
}

function definitionOf(column: Column<KubeObject>): TableColumnDefinition {
  const { name, type, format = '', description, priority } = column;
  return { name, type, format, description, priority };
}
