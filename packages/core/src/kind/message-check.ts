import type { Field, Schema, SchemaNode } from './schema.ts';
import { type MessageNode, messageNode } from './schema-walk.ts';

/** Largest field number that the protobuf encoding can carry, and the range that it reserves. */
const maxNumber = 2 ** 29 - 1;
const reservedFrom = 19_000;
const reservedTo = 19_999;

const checked = new WeakMap<MessageNode, boolean>();
/** Messages of which every reachable message was checked and has a protobuf form; most kinds share many of them. */
const complete = new WeakSet<MessageNode>();

function checkNumber(where: string, number: number, taken: Map<number, string>, field: string): void {
  if (
    !Number.isInteger(number) ||
    number < 1 ||
    number > maxNumber ||
    (number >= reservedFrom && number <= reservedTo)
  ) {
    throw new Error(`${where}: field ${field}: ${number} is not a valid field number`);
  }
  const other = taken.get(number);
  if (other !== undefined) throw new Error(`${where}: fields ${other} and ${field} share the number ${number}`);
  taken.set(number, field);
}

function checkField(where: string, name: string, field: Field<unknown, boolean>): void {
  if (name === '' || name === '__proto__')
    throw new Error(`${where}: ${JSON.stringify(name)} cannot be the name of a field`);
  if (field.inline && field.schema.node.type !== 'message')
    throw new Error(`${where}: field ${name} is inline but not a message`);
  if (field.jsonOnly && field.number !== undefined)
    throw new Error(`${where}: field ${name} is for JSON alone but has a number`);
}

/** Names of a message's JSON keys, each once; an inlined field that hides another is a contradiction. */
function checkNames(message: MessageNode, where: string, names: Set<string>): void {
  for (const [name, field] of Object.entries(message.fields)) {
    const inner = field.inline ? messageNode(field.schema) : undefined;
    if (inner) checkNames(inner, where, names);
    else if (names.has(name)) throw new Error(`${where}: an inlined message contains the field ${name} again`);
    else names.add(name);
  }
}

/** Checks one message by itself; true when all its fields have numbers. */
function checkMessage(message: MessageNode): boolean {
  const known = checked.get(message);
  if (known !== undefined) return known;
  const where = `message ${message.name}`;
  const taken = new Map<number, string>();
  let numbered = message.json === undefined;
  let isFlat = true;
  for (const [name, field] of Object.entries(message.fields)) {
    checkField(where, name, field);
    if (field.number !== undefined) checkNumber(where, field.number, taken, name);
    else if (!field.jsonOnly) numbered = false;
    if (field.inline) isFlat = false;
  }
  if (!isFlat) checkNames(message, where, new Set());
  checked.set(message, numbered);
  return numbered;
}

/**
 * Every message that a schema reaches, itself included, each once, without the {@link complete} ones. Recursive schemas
 * are supported.
 */
function incompleteMessages(schema: Schema<unknown>): Set<MessageNode> {
  const seen = new Set<MessageNode>();
  const visit = (node: SchemaNode): void => {
    if (node.type === 'list') visit(node.items.node);
    else if (node.type === 'map') visit(node.values.node);
    else if (node.type === 'union') visit(node.message.node);
    else if (node.type === 'message' && !seen.has(node) && !complete.has(node)) {
      seen.add(node);
      // The structure of a JSON Schema may be large and is created on first use, so it is not visited.
      if (node.json !== undefined) return;
      for (const field of Object.values(node.fields)) visit(field.schema.node);
    }
  };
  visit(schema.node);
  return seen;
}

/**
 * Checks every message that a schema reaches and returns whether all of them have a protobuf form.
 *
 * @throws Error naming message and field when numbers repeat or are out of range, or inlined names collide.
 */
export function checkMessages(schema: Schema<unknown>): { readonly protobuf: boolean } {
  let protobuf = true;
  const messages = incompleteMessages(schema);
  for (const message of messages) protobuf = checkMessage(message) && protobuf;
  if (protobuf) for (const message of messages) complete.add(message);
  return { protobuf };
}
