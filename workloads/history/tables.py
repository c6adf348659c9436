"""Between rows of integers and Arrow tables of the history's schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workloads.history.rows import Matrix
from workloads.history.schema import SCHEMA, TEXT_COLUMNS

Columns = dict[str, npt.NDArray[Any]]
Names = Mapping[str, Sequence[str]]


def columns_of(matrix: Matrix) -> Columns:
    """The columns of a matrix of rows; texts stay codes."""
    return {name: matrix[:, place] for place, name in enumerate(SCHEMA.names)}


def to_table(columns: Columns, names: Names) -> pa.Table:
    """Rows as an Arrow table. ``names`` are the texts behind the codes of the text columns, -1 is null."""
    arrays = []
    for field in SCHEMA:
        numbers = columns[field.name]
        if field.name in TEXT_COLUMNS:
            arrays.append(_texts(numbers, names[field.name]))
        else:
            arrays.append(pa.array(numbers.astype(field.type.to_pandas_dtype(), copy=False)))
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def _texts(codes: npt.NDArray[Any], names: Sequence[str]) -> pa.DictionaryArray:
    used, places = np.unique(codes, return_inverse=True)
    places = places.astype(np.int32)
    known = used >= 0
    texts = pa.array([names[code] for code in used[known]], pa.string())
    if known.all():
        return pa.DictionaryArray.from_arrays(pa.array(places), texts)
    null = places < int((~known).sum())
    return pa.DictionaryArray.from_arrays(pa.array(np.where(null, 0, places - 1), pa.int32(), mask=null), texts)


def from_tables(tables: Sequence[pa.Table]) -> tuple[Columns, Names]:
    """Columns and texts of tables laid end to end; the texts of all are merged."""
    table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    columns: Columns = {}
    names: dict[str, Sequence[str]] = {}
    for name in SCHEMA.names:
        column = table.column(name).combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], SCHEMA.field(name).type)
        if name in TEXT_COLUMNS:
            columns[name] = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            names[name] = column.dictionary.to_pylist()
        else:
            columns[name] = column.to_numpy(zero_copy_only=False)
    return columns, names
