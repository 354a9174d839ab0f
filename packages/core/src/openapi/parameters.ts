import type { ConnectParameter } from '../kind/connect.ts';
import type { OpenApiParameter, OpenApiSchema } from './open-api-types.ts';

const text: OpenApiSchema = { type: 'string' };
const boolean: OpenApiSchema = { type: 'boolean' };
const integer: OpenApiSchema = { type: 'integer' };

function query(name: string, schema: OpenApiSchema, description: string): OpenApiParameter {
  return { name, in: 'query', description, schema };
}

function path(name: string, description: string): OpenApiParameter {
  return { name, in: 'path', required: true, description, schema: text };
}

const dryRun = query('dryRun', text, 'With the value All, every check runs and nothing is stored.');
const fieldManager = query(
  'fieldManager',
  text,
  'Name of the program that makes the change, at most 128 printable characters.',
);
const fieldValidation = query(
  'fieldValidation',
  text,
  'What unknown and repeated fields lead to: Ignore drops them, Warn (the default) also warns, Strict refuses the request.',
);
const force = query('force', boolean, 'Takes fields over from other managers; for apply patches only.');
const resourceVersion = query(
  'resourceVersion',
  text,
  'Which state is read: unset for the latest, 0 for any, otherwise one that is not older. A watch starts behind it.',
);

/** Path parameters, and query parameters that all operations on a path have. */
export const pathParameters = {
  namespace: path('namespace', 'Name of the namespace.'),
  tail: path('path', 'Path that is asked for at the other end.'),
  name: (kind: string): OpenApiParameter => path('name', `Name of the ${kind}.`),
  pretty: query('pretty', text, 'Indents JSON answers when true.'),
} as const;

const connectTypes: Readonly<Record<ConnectParameter['type'], OpenApiSchema>> = {
  boolean,
  integer,
  string: text,
  strings: text,
  time: text,
  ports: text,
};

/** Query parameters of a connect subresource, whose requests are forwarded. */
export function connectParameters(parameters: readonly ConnectParameter[]): OpenApiParameter[] {
  return parameters.map(({ name, type, description }) => query(name, connectTypes[type], description));
}

const selectors: readonly OpenApiParameter[] = [
  query('labelSelector', text, 'Restricts the result to objects whose labels fit; everything by default.'),
  query('fieldSelector', text, 'Restricts the result to objects whose fields fit; everything by default.'),
];

/** Parameters of lists. With `watch`, a list operation is a watch. */
export const listParameters: readonly OpenApiParameter[] = [
  query(
    'allowWatchBookmarks',
    boolean,
    'Asks a watch for BOOKMARK events, which carry nothing but a newer resourceVersion.',
  ),
  query('continue', text, 'Token of the previous chunk: reads on where that one ended, in the same state.'),
  ...selectors,
  query('limit', integer, 'Largest number of objects in the answer; more are announced by metadata.continue.'),
  resourceVersion,
  query('resourceVersionMatch', text, 'How resourceVersion is meant for lists: Exact or NotOlderThan.'),
  query('sendInitialEvents', boolean, 'Begins a watch with the present objects, ended by a BOOKMARK.'),
  query('timeoutSeconds', integer, 'Seconds after which the call ends, whether or not something happened.'),
  query('watch', boolean, 'Answers with a stream of changes instead of a list.'),
];

/** Parameters of a GET of one object. */
export const readParameters: readonly OpenApiParameter[] = [
  query('exact', boolean, 'Keeps cluster-specific fields, such as the namespace, in an export.'),
  query('export', boolean, 'Takes out the fields that users cannot set.'),
  resourceVersion,
];

/** Parameters of creates and replacements. */
export const writeParameters: readonly OpenApiParameter[] = [dryRun, fieldManager, fieldValidation];

/** Parameters of patches. kubectl detects server-side validation by the presence of `fieldValidation`. */
export const patchParameters: readonly OpenApiParameter[] = [...writeParameters, force];

/** Parameters of deletes; the body may contain the same options. */
export const deleteParameters: readonly OpenApiParameter[] = [
  dryRun,
  query(
    'gracePeriodSeconds',
    integer,
    'Seconds the object is given to end; 0 removes it at once. By default that of the kind.',
  ),
  query('orphanDependents', boolean, 'Old form of propagationPolicy: true orphans the dependents, false removes them.'),
  query(
    'ignoreStoreReadErrorWithClusterBreakingPotential',
    boolean,
    'Removes an object even though its stored form cannot be read, past finalizers and preconditions. Dangerous.',
  ),
  query('propagationPolicy', text, 'What happens to dependents: Orphan, Background or Foreground.'),
];

/** Parameters of a DELETE of a collection. */
export const deleteCollectionParameters: readonly OpenApiParameter[] = [
  ...deleteParameters,
  ...listParameters.filter(({ name }) =>
    ['continue', 'fieldSelector', 'labelSelector', 'limit', 'resourceVersion', 'timeoutSeconds'].includes(name),
  ),
];
