import test from 'ava';
import {
  configMapKeyErrors,
  dns1035LabelErrors,
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  envVarNameErrors,
  labelKeyErrors,
  labelValueErrors,
  nameErrors,
  namePrefixErrors,
  portNameErrors,
  qualifiedNameErrors,
} from '../../src/meta/names.ts';

type Rule = (text: string) => string[];

const rules: readonly [string, Rule, readonly string[], readonly string[]][] = [
  [
    'DNS-1123 label',
    dns1123LabelErrors,
    ['a', '0', 'a-b', 'a--b', 'a'.repeat(63)],
    ['', '-a', 'a-', 'A', 'a.b', 'a_b', 'ä', 'a\n', 'a'.repeat(64)],
  ],
  [
    'DNS-1123 subdomain',
    dns1123SubdomainErrors,
    ['a', '0.a', 'a-b.c', `${'a'.repeat(100)}.b`, 'a'.repeat(253)],
    ['', '.', 'a.', '.a', 'a..b', 'a-.b', 'A.b', 'a b', 'a/b', 'a'.repeat(254), 'a.b\n'],
  ],
  [
    'DNS-1035 label',
    dns1035LabelErrors,
    ['a', 'a-0', 'a'.repeat(63)],
    ['', '0a', '-a', 'a-', 'A', 'a.b', 'a'.repeat(64)],
  ],
  [
    'qualified name',
    qualifiedNameErrors,
    ['a', 'A_b.c-d', 'example.com/A', '0', `${'a'.repeat(253)}/${'b'.repeat(63)}`],
    [
      '',
      '/',
      'a/',
      '/a',
      'a/b/c',
      'Example.com/a',
      '-a',
      'a-',
      'a b',
      '__proto__',
      'a'.repeat(64),
      `${'a'.repeat(254)}/b`,
    ],
  ],
  ['label key', labelKeyErrors, ['app', 'constructor'], ['a=b']],
  ['label value', labelValueErrors, ['', 'a', 'A_b.c-d', 'a'.repeat(63)], ['-a', 'a-', 'a/b', ' ', 'a'.repeat(64)]],
  [
    'port name',
    portNameErrors,
    ['http', 'a-1', '8a', 'a'.repeat(15)],
    ['', '80', 'A', '-a', 'a-', 'a--b', 'a'.repeat(16)],
  ],
  [
    'ConfigMap key',
    configMapKeyErrors,
    ['a', '.a', 'A_b-c.d', 'a..b'],
    ['', '.', '..', '..a', 'a/b', 'a b', 'a'.repeat(254)],
  ],
  [
    'environment variable',
    envVarNameErrors,
    ['A', '_a', 'a.b-c', '1a', '..', 'a b', '~'],
    ['', 'a=b', 'ä', 'a\n', '\t'],
  ],
];

for (const [title, rule, good, bad] of rules) {
  test(`rule: ${title}`, (t) => {
    for (const text of good) t.deepEqual(rule(text), [], text);
    for (const text of bad) t.true(rule(text).length > 0, JSON.stringify(text));
  });
}

// Copied from the output of k8s.io/apimachinery v0.34.
const upstreamTexts: [rule: (text: string) => string[], text: string, errors: string[]][] = [
  [
    dns1123SubdomainErrors,
    'Wrong_Name',
    [
      "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start " +
        "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
  [
    dns1123LabelErrors,
    'Wrong_Name',
    [
      "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end " +
        "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is " +
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ],
  ],
  [dns1123LabelErrors, 'a.b', ['must not contain dots']],
  [
    dns1035LabelErrors,
    '1a',
    [
      "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, " +
        "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is " +
        "'[a-z]([-a-z0-9]*[a-z0-9])?')",
    ],
  ],
  [
    qualifiedNameErrors,
    '/',
    [
      'prefix part must be non-empty',
      'name part must be non-empty',
      "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric " +
        "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is " +
        "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  ],
  [
    qualifiedNameErrors,
    'a/b/c',
    [
      "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an " +
        "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is " +
        "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' " +
        "(e.g. 'example.com/MyName')",
    ],
  ],
  [
    labelValueErrors,
    '-',
    [
      "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and " +
        "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is " +
        "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    ],
  ],
  [
    portNameErrors,
    '-1--_',
    [
      'must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
      'must contain at least one letter (a-z)',
      'must not contain consecutive hyphens',
      'must not begin or end with a hyphen',
    ],
  ],
  [
    configMapKeyErrors,
    '../a',
    [
      "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  " +
        "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
      "must not start with '..'",
    ],
  ],
  [
    envVarNameErrors,
    'a=b',
    ["a valid environment variable name must consist only of printable ASCII characters other than '='"],
  ],
];

for (const [rule, text, errors] of upstreamTexts) {
  test(`the texts of ${rule.name} for ${JSON.stringify(text)} are those of Kubernetes`, (t) => {
    t.deepEqual(rule(text), errors);
  });
}

test('details of names', (t) => {
  t.deepEqual(dns1123LabelErrors('a'.repeat(64)), ['must be no more than 63 characters']);
  t.is(qualifiedNameErrors('A.B/c').length, 1);
  t.regex(qualifiedNameErrors('A.B/c')[0] ?? '', /^prefix part /);
});

test('no object name breaks a path, whatever its rule', (t) => {
  for (const name of ['.', '..', 'a/b', 'a%2Fb']) t.true(nameErrors('pathSegment', name).length > 0, name);
  t.deepEqual(nameErrors('pathSegment', 'system:node:A_b'), []);
  t.true(nameErrors('pathSegment', 'a'.repeat(254)).length > 0);
});

test('prefixes of names may end with a dash', (t) => {
  t.deepEqual(namePrefixErrors('dns1123Subdomain', 'web-'), []);
  t.deepEqual(namePrefixErrors('dns1035Label', 'web-'), []);
  t.true(namePrefixErrors('dns1123Subdomain', '-').length > 0);
  t.true(namePrefixErrors('dns1123Subdomain', 'Web-').length > 0);
});

test('megabytes of hostile text are checked in linear time', (t) => {
  const texts = [
    `${'a'.repeat(3_000_000)}!`,
    'a.'.repeat(1_500_000),
    `${'-'.repeat(3_000_000)}`,
    `${'a-'.repeat(1_500_000)}/`,
  ];
  const started = process.hrtime.bigint();
  for (const text of texts) {
    for (const [, rule] of rules) rule(text);
  }
  // Quadratic checks would take hours; the bound only has to distinguish the two on a busy machine.
  t.true(process.hrtime.bigint() - started < 20_000_000_000n);
});

test('qualified names have the same result however many others are checked in between', (t) => {
  const invalid = qualifiedNameErrors('-a');
  t.is(invalid.length, 1);
  for (let i = 0; i < 2_500; i += 1) {
    t.deepEqual(qualifiedNameErrors(`example.com/name-${i}`), []);
    t.deepEqual(qualifiedNameErrors('example.com/name-0'), []);
    t.deepEqual(qualifiedNameErrors('-a'), invalid);
  }
});
