import { patchComponent } from '../kind/open-api-schema.ts';
import type { OpenApiSchema } from './open-api-types.ts';

const metaV1 = 'io.k8s.apimachinery.pkg.apis.meta.v1';

/** Component names of bodies that belong to no kind of the registry. */
export const metaComponents = {
  status: `${metaV1}.Status`,
  deleteOptions: `${metaV1}.DeleteOptions`,
  patch: patchComponent,
  watchEvent: `${metaV1}.WatchEvent`,
  apiResourceList: `${metaV1}.APIResourceList`,
  apiResource: `${metaV1}.APIResource`,
} as const;

/** Reference to a component. */
export function refTo(component: string): OpenApiSchema {
  return { $ref: `#/components/schemas/${component}` };
}

function text(description: string): OpenApiSchema {
  return { type: 'string', description };
}

function texts(description: string): OpenApiSchema {
  return { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'atomic', description };
}

/** Schemas of the bodies of watches and discovery, which are built without a message schema. */
export const metaSchemas: Readonly<Record<string, OpenApiSchema>> = {
  [metaComponents.watchEvent]: {
    type: 'object',
    description: 'One change in a watch.',
    required: ['type', 'object'],
    properties: {
      type: text('ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.'),
      object: {
        type: 'object',
        description: 'The object after the change, for DELETED its last state; for ERROR a Status.',
        'x-kubernetes-preserve-unknown-fields': true,
      },
    },
    'x-kubernetes-group-version-kind': [{ group: '', version: 'v1', kind: 'WatchEvent' }],
  },
  [metaComponents.apiResource]: {
    type: 'object',
    description: 'A resource that the server offers.',
    required: ['name', 'singularName', 'namespaced', 'kind', 'verbs'],
    properties: {
      name: text('Plural, and for subresources a slash and its name.'),
      singularName: text('Singular; empty for subresources.'),
      namespaced: { type: 'boolean', description: 'Whether objects live in namespaces.' },
      group: text('Group of the kind, when it is not that of the list.'),
      version: text('Version of the kind, when it is not that of the list.'),
      kind: text('Kind of the bodies.'),
      verbs: texts('What can be done with it.'),
      shortNames: texts('Short words for it.'),
      categories: texts('Sets of resources that it belongs to, e.g. all.'),
      storageVersionHash: text('Equal for resources with a common stored form.'),
    },
  },
  [metaComponents.apiResourceList]: {
    type: 'object',
    description: 'The resources of a group version.',
    required: ['groupVersion', 'resources'],
    properties: {
      apiVersion: text('Group and version of the format the list is written in.'),
      kind: text('Kind of the list.'),
      groupVersion: text('The group version.'),
      resources: {
        type: 'array',
        items: refTo(metaComponents.apiResource),
        'x-kubernetes-list-type': 'atomic',
        description: 'The resources.',
      },
    },
    'x-kubernetes-group-version-kind': [{ group: '', version: 'v1', kind: 'APIResourceList' }],
  },
};
