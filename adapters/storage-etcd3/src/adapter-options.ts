import { type Infer, optional, required, s } from '@keelson/core';

const historySchema = s.message(
  'keelson.storage.etcd3.History',
  'The history that readers and watchers of old revisions can use.',
  {
    minChanges: optional(
      undefined,
      s.int64({ minimum: 0 }),
      'Number of revisions that are kept at least; default 1000.',
    ),
    minAgeMs: optional(
      undefined,
      s.int64({ minimum: 0 }),
      'Changes younger than this many milliseconds are kept; default 300000.',
    ),
  },
);

const tlsSchema = s.message(
  'keelson.storage.etcd3.Tls',
  'Paths of PEM files; an empty object selects TLS with public CAs.',
  {
    caFile: optional(undefined, s.string({ minLength: 1 }), 'CA that signed the certificates of the members.'),
    certFile: optional(undefined, s.string({ minLength: 1 }), 'Client certificate that is presented to the members.'),
    keyFile: optional(undefined, s.string({ minLength: 1 }), 'Key of that certificate.'),
  },
);

export const optionsSchema = s.message('keelson.storage.etcd3.Options', 'A store in etcd, for any number of servers.', {
  hosts: required(undefined, s.list(s.string({ minLength: 1 })), 'host:port of the members of one cluster.'),
  prefix: optional(undefined, s.string({ minLength: 1 }), 'Begins and ends with a slash; default /keelson/.'),
  tls: optional(undefined, tlsSchema, 'When present, connections use TLS.'),
  username: optional(undefined, s.string({ minLength: 1 }), 'User of etcd.'),
  password: optional(undefined, s.string(), 'Password of that user.'),
  history: optional(undefined, historySchema, 'The history window.'),
  compaction: optional(
    undefined,
    s.enum('auto', 'never'),
    'never: another program compacts this etcd, with the history of all its users; default auto.',
  ),
});

/** Options of the adapter in a config file. */
export type Etcd3AdapterOptions = Infer<typeof optionsSchema>;
