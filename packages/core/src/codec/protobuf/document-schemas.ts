import { listMetaSchema, objectMetaSchema } from '../../kind/object-meta-schema.ts';
import { always, optional, type Schema, s } from '../../kind/schema.ts';
import { statusSchema } from '../../kind/status-schema.ts';
import { typeMetaFields } from '../../kind/type-meta-fields.ts';

const metaV1 = 'k8s.io.apimachinery.pkg.apis.meta.v1';

const groupVersion = s.message(`${metaV1}.GroupVersionForDiscovery`, 'A version of a group.', {
  groupVersion: always(1, s.string(), 'Group and version, as apiVersion has them.'),
  version: always(2, s.string(), 'The version alone.'),
});

const serverAddress = s.message(`${metaV1}.ServerAddressByClientCIDR`, 'Where clients of a network reach the server.', {
  clientCIDR: always(1, s.string(), 'The network.'),
  serverAddress: always(2, s.string(), 'Host and port.'),
});

const groupFields = {
  name: always(1, s.string(), 'Name of the group.'),
  versions: always(2, s.list(groupVersion), 'Its versions.'),
  preferredVersion: optional(3, groupVersion, 'The version to prefer.'),
  serverAddressByClientCIDRs: optional(4, s.list(serverAddress), 'Where the server is.'),
} as const;

const apiGroup = s.message(`${metaV1}.APIGroup`, 'An API group.', { ...typeMetaFields, ...groupFields });

const apiGroupList = s.message(`${metaV1}.APIGroupList`, 'All API groups.', {
  ...typeMetaFields,
  groups: always(1, s.list(apiGroup), 'The groups.'),
});

const apiVersions = s.message(`${metaV1}.APIVersions`, 'Versions of the core group.', {
  ...typeMetaFields,
  versions: always(1, s.list(s.string()), 'The versions.'),
  serverAddressByClientCIDRs: always(2, s.list(serverAddress), 'Where the server is.'),
});

/** The verbs of a resource. In JSON they are a list of strings, in protobuf a message of their own. */
const verbs = s.message(`${metaV1}.Verbs`, 'What can be done with a resource.', {
  items: optional(1, s.list(s.string()), 'The verbs.'),
});

const apiResource = s.message(`${metaV1}.APIResource`, 'A resource or subresource.', {
  name: always(1, s.string(), 'Plural, with the subresource after a slash.'),
  singularName: always(6, s.string(), 'Singular.'),
  namespaced: always(2, s.bool(), 'Whether its objects live in namespaces.'),
  group: optional(8, s.string(), 'Group of the kind where it is another one than that of the list.'),
  version: optional(9, s.string(), 'Version of the kind where it is another one than that of the list.'),
  kind: always(3, s.string(), 'Kind of its bodies.'),
  verbs: optional(4, verbs, 'What can be done with it.'),
  shortNames: optional(5, s.list(s.string()), 'Short names.'),
  categories: optional(7, s.list(s.string()), 'Groups of kinds it belongs to.'),
  storageVersionHash: optional(10, s.string(), 'Equal for resources that share their stored form.'),
});

const apiResourceList = s.message(`${metaV1}.APIResourceList`, 'Resources of a group and version.', {
  ...typeMetaFields,
  groupVersion: always(1, s.string(), 'Group and version.'),
  resources: always(2, s.list(apiResource), 'The resources.'),
});

/** Converts `verbs` from a list of strings, as in JSON, to the message that protobuf requires. */
function wrapVerbs(document: Readonly<Record<string, unknown>>): unknown {
  const resources = document['resources'] as readonly { readonly verbs?: unknown }[];
  return { ...document, resources: resources.map((resource) => ({ ...resource, verbs: { items: resource.verbs } })) };
}

/** The protobuf form of a document that is not an object of a kind, such as a discovery document. */
export interface DocumentForm {
  readonly schema: Schema<unknown>;
  /** Converts the JSON document to the object that the schema describes. */
  readonly shape?: (document: Readonly<Record<string, unknown>>) => unknown;
}

/** Documents of version v1 with a protobuf form, by their kind. */
export const documentForms: Readonly<Record<string, DocumentForm>> = {
  APIGroup: { schema: apiGroup },
  APIGroupList: { schema: apiGroupList },
  APIResourceList: { schema: apiResourceList, shape: wrapVerbs },
  APIVersions: { schema: apiVersions },
  Status: { schema: statusSchema },
};

/** An object of which only the metadata is sent. */
export const partialMetadataSchema: Schema<unknown> = s.message(
  `${metaV1}.PartialObjectMetadata`,
  'Metadata of an object.',
  {
    ...typeMetaFields,
    metadata: optional(1, objectMetaSchema, 'The metadata.'),
  },
);

const lists = new WeakMap<Schema<unknown>['node'], Schema<unknown>>();

/** The schema of a list of objects as protobuf has it, for readers of lists. Items carry no kind and apiVersion. */
export function listSchemaOf(items: Schema<unknown>): Schema<unknown> {
  let list = lists.get(items.node);
  if (list === undefined) {
    list = s.message(`${metaV1}.List`, 'A list of objects.', {
      ...typeMetaFields,
      metadata: optional(1, listMetaSchema, 'Which state the list shows.'),
      items: always(2, s.list(items), 'The objects.'),
    });
    lists.set(items.node, list);
  }
  return list;
}
