"""Pictures and tables of results as a browser fetches them, from the folder of results and nowhere else."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ramp.web.laboratory.folder import ResultsError, ResultsFolder
from ramp.web.laboratory.results import FILE_MAX, PICTURE_SUFFIX, TABLE_SUFFIX, read_picture

PATH: Final = "/laboratory/files/{experiment}/{name}"


def files_route(folder: ResultsFolder) -> Route:
    """The route of pictures, which are shown, and of tables, which are saved; whoever is signed in may have both.

    Args:
        folder: of results.
    """

    async def answer(request: Request) -> Response:
        experiment, name = request.path_params["experiment"], request.path_params["name"]
        try:
            if name.endswith(PICTURE_SUFFIX):
                picture = await asyncio.to_thread(read_picture, folder, experiment, name)
                return Response(picture, media_type="image/png")
            if name.endswith(TABLE_SUFFIX):
                table = await asyncio.to_thread(folder.read, name, FILE_MAX, experiment)
                saved = {"content-disposition": f'attachment; filename="{experiment}-{name}"'}
                return Response(table, media_type="text/csv; charset=utf-8", headers=saved)
        except ResultsError as error:
            return PlainTextResponse(f"{error}\n", status_code=404)
        return PlainTextResponse("only pictures and tables of results are had here\n", status_code=404)

    return Route(PATH, answer, methods=["GET"])
