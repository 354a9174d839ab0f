import { WireReader, WireWriter } from '@keelson/protobuf-wire';

/** Writes and reads the values of one kind of field. */
export interface FieldKind<T> {
  write(writer: WireWriter, field: number, value: T): unknown;
  /** `previous` is the value of earlier occurrences of the field. */
  read(reader: WireReader, previous: T | undefined): T;
}

interface Field<T> {
  readonly number: number;
  readonly kind: FieldKind<T>;
}

/** Assigns a field number to a kind. */
export function at<T>(number: number, kind: FieldKind<T>): Field<T> {
  return { number, kind };
}

/** A message type. All fields are optional; an absent field has the empty value of its kind. */
export interface Message<T> extends FieldKind<T> {
  encode(value: T): Buffer;
  decode(bytes: Buffer): T;
}

/** The value type of a message type. */
export type Fields<M> = M extends Message<infer T> ? T : never;

type ValueOf<F> = F extends Field<infer T> ? T : never;
// `unknown` would reject every field, because a kind writes the type that it reads.
// biome-ignore lint/suspicious/noExplicitAny: a field of any type
type AnyField = Field<any>;

/** Describes a message by the names, numbers and kinds of its fields; fields that are not described are skipped. */
export function message<F extends Record<string, AnyField>>(
  fields: F,
): Message<{ readonly [K in keyof F]?: ValueOf<F[K]> | undefined }> {
  type Value = { [K in keyof F]?: ValueOf<F[K]> | undefined };
  const entries = Object.entries(fields) as [keyof F & string, AnyField][];
  const byNumber = new Map(entries.map(([name, { number, kind }]) => [number, { name, kind }]));

  const writeTo = (writer: WireWriter, value: Value): void => {
    for (const [name, { number, kind }] of entries) {
      const content = value[name];
      if (content !== undefined) kind.write(writer, number, content);
    }
  };
  const readFrom = (reader: WireReader, into: Value): Value => {
    for (let number = reader.next(); number !== 0; number = reader.next()) {
      const field = byNumber.get(number);
      if (field === undefined) reader.skip();
      else into[field.name] = field.kind.read(reader, into[field.name]);
    }
    return into;
  };
  return {
    encode: (value) => {
      const writer = new WireWriter();
      writeTo(writer, value);
      return writer.finish();
    },
    decode: (bytes) => readFrom(new WireReader(bytes), {}),
    write: (writer, field, value) => {
      const inner = new WireWriter();
      writeTo(inner, value);
      writer.message(field, inner);
    },
    // Protobuf merges several occurrences of a message field.
    read: (reader, previous) => reader.within((inner) => readFrom(inner, Object.assign({} as Value, previous))),
  };
}
