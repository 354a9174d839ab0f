import { type Infer, optional, required, s } from '@keelson/core';

const historySchema = s.message('keelson.storage.etcd3.History', 'What is kept for readers and watchers of the past.', {
  minChanges: optional(undefined, s.int64({ minimum: 0 }), 'At least this many revisions; default 1000.'),
  minAgeMs: optional(
    undefined,
    s.int64({ minimum: 0 }),
    'At least changes this young, in milliseconds; default 300000.',
  ),
});

const tlsSchema = s.message(
  'keelson.storage.etcd3.Tls',
  'Files of PEM text; an empty object asks for TLS with public CAs.',
  {
    caFile: optional(undefined, s.string({ minLength: 1 }), 'CA that signed the certificates of the members.'),
    certFile: optional(undefined, s.string({ minLength: 1 }), 'Certificate shown to the members.'),
    keyFile: optional(undefined, s.string({ minLength: 1 }), 'Key of that certificate.'),
  },
);

export const optionsSchema = s.message('keelson.storage.etcd3.Options', 'A store in etcd, for any number of servers.', {
  hosts: required(undefined, s.list(s.string({ minLength: 1 })), 'host:port of the members of one cluster.'),
  prefix: optional(undefined, s.string({ minLength: 1 }), 'Begins and ends with a slash; default /keelson/.'),
  tls: optional(undefined, tlsSchema, 'Given: connections use TLS.'),
  username: optional(undefined, s.string({ minLength: 1 }), 'User of etcd.'),
  password: optional(undefined, s.string(), 'Password of that user.'),
  history: optional(undefined, historySchema, 'The history window.'),
  compaction: optional(
    undefined,
    s.enum('auto', 'never'),
    'never: somebody else compacts this etcd, which all its users share; default auto.',
  ),
});

/** Options of the adapter in a config file. */
export type Etcd3AdapterOptions = Infer<typeof optionsSchema>;
